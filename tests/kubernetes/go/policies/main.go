// The enforcer of NetworkPolicies of kube-router, and nothing else of it: it writes iptables' rules and
// sets of addresses for the policies and pods of the API server. It says "ready" when it watches these.
//
// usage: policies KUBECONFIG NODE RANGE-OF-SERVICES
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func run(kubeconfig, node, services string) error {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	config := options.NewKubeRouterConfig()
	config.EnableIPv4 = true
	config.HostnameOverride = node
	config.ClusterIPCIDRs = []string{services}

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &lock, tables, sets)
	if err != nil {
		return err
	}
	factory.Start(context.Background().Done())
	for kind, done := range factory.WaitForCacheSync(context.Background().Done()) {
		if !done {
			return fmt.Errorf("%v cannot be listed", kind)
		}
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, namespaces: controller.NamespaceEventHandler,
		policies: controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	beats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range beats {
		}
	}()
	fmt.Println("ready")
	var group sync.WaitGroup
	group.Add(1)
	controller.Run(beats, nil, &group)
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: policies KUBECONFIG NODE RANGE-OF-SERVICES")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}
