//! The command that removes the cause of a [`VerbsError`].

use super::SettingNames;
use crate::verbs::VerbsError;
use std::io::ErrorKind;

/// Commands are for root on the host unless the text says otherwise.
pub(super) fn fix(error: &VerbsError, interface: &str, names: &SettingNames) -> String {
    let interface = if interface.is_empty() {
        "eth0"
    } else {
        interface
    };
    match error {
        VerbsError::NoLibrary { .. } => "apt-get install libibverbs1 ibverbs-providers".to_owned(),
        VerbsError::NoProvider { .. } => "apt-get install ibverbs-providers".to_owned(),
        VerbsError::NoDevice { .. } => format!(
            "for a NIC with RDMA: load its driver, such as `modprobe mlx5_ib`; to try it in \
             software: `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev {interface}`"
        ),
        VerbsError::NoSuchDevice { .. } => {
            format!("set {} to one of these, or do not set it", names.device)
        }
        VerbsError::NoSuchGid { .. } => {
            format!("set {} to one of these, or do not set it", names.gid_index)
        }
        VerbsError::NoReliableDevice { iwarp: true, .. } => {
            "of a NIC that has RoCE too (Intel E810, irdma): devlink dev param set pci/ADDRESS name \
             enable_roce value true cmode driverinit; devlink dev reload pci/ADDRESS"
                .to_owned()
        }
        VerbsError::NoReliableDevice { .. } => {
            "none; TCP is right on this host, and spark.faro.fabric=tcp looks for no device".to_owned()
        }
        VerbsError::InactivePorts {
            without_manager: true,
            ..
        } => "start a subnet manager on the InfiniBand network (opensm, or that of a switch)".to_owned(),
        VerbsError::InactivePorts { .. } => {
            format!("check the cable; ip link set dev {interface} up")
        }
        VerbsError::LimitedMember { .. } => {
            "in the subnet manager's partitions.conf, make the port a full member (=full)".to_owned()
        }
        VerbsError::NoAddress { .. } => format!("ip address add IP/PREFIX dev {interface}"),
        VerbsError::NoneUsable { first, .. } => fix(first, interface, names),
        VerbsError::NoQueuePair { source, .. } if source.kind() == ErrorKind::OutOfMemory => {
            "ulimit -l unlimited; or fewer executors on this host: each connection takes a queue \
             pair of the device"
                .to_owned()
        }
        VerbsError::NoQueuePair { .. } | VerbsError::DeviceLimit { .. } => {
            format!("name another device with {}, if there is one", names.device)
        }
        VerbsError::NoFile { path, .. } => format!(
            "modprobe ib_uverbs; in a container: docker run --device={path}, in Kubernetes the \
             device plug-in's resource"
        ),
        VerbsError::Permission { path, .. } => format!(
            "chmod a+rw {path}; for good, a rule in /etc/udev/rules.d: \
             SUBSYSTEM==\"infiniband_verbs\", MODE=\"0666\""
        ),
        VerbsError::Memlock { needed, .. } => format!(
            "ulimit -l {kib} before the executor starts; systemd: LimitMEMLOCK=infinity; docker: \
             --ulimit memlock=-1; or set {setting} below that limit",
            kib = needed.div_ceil(1024),
            setting = names.memory_limit
        ),
        VerbsError::Register { .. } => {
            "ulimit -l unlimited; docker: --ulimit memlock=-1".to_owned()
        }
        _ => "ibv_devinfo -v; dmesg | tail".to_owned(),
    }
}
