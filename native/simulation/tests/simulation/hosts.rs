//! Tests how many connections node services save.

use super::outputs;
use faro_simulation::{Cluster, HostConnections};

fn count(hosts: usize, executors: usize, services: bool, one_host: bool) -> HostConnections {
    let hosts = Cluster {
        hosts,
        executors,
        services,
        one_host,
    };
    hosts.count(outputs()).unwrap()
}

#[test]
fn a_host_of_a_cluster_has_the_same_connections_whether_the_others_read_too() {
    for services in [false, true] {
        assert_eq!(count(5, 3, services, true), count(5, 3, services, false));
    }
}

#[test]
fn with_services_an_executor_has_one_connection_to_each_host() {
    let (direct, by_services) = (count(6, 4, false, true), count(6, 4, true, true));
    assert_eq!(
        direct,
        HostConnections {
            executor: 23,
            executor_to_others: 20,
            service: 0,
            host_to_others: 80,
        }
    );
    assert_eq!(
        by_services,
        HostConnections {
            executor: 6,
            executor_to_others: 5,
            service: 24,
            host_to_others: 40,
        }
    );
}
