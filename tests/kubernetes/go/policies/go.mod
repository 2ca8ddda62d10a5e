module faro.test/policies

go 1.24.0

require (
	github.com/cloudnativelabs/kube-router/v2 v2.1.0
	k8s.io/api v0.34.4
	k8s.io/apimachinery v0.34.4
	k8s.io/client-go v0.34.4
)
