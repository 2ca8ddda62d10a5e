//! Counts the connections of a cluster in which every executor reads from all others: directly, or
//! from the node service of each host.
//!
//! The endpoints are those of the product, so who keeps which connection, and that two endpoints
//! that read from each other have one, is decided by their code and not here. Of a large cluster
//! only one host's connections are made: each executor of it reads as all would, and is read from
//! as all would be. What the others would do among themselves adds no connection to this host.

use crate::outputs::MapOutputs;
use crate::plan::RunPlan;
use crate::report::Violation;
use crate::run::Run;
use crate::sim_rng::SimRng;
use faro_fabric::verbs::FIRST_CONNECTION_BYTES;
use faro_sync::lock;
use std::collections::BTreeSet;

/// A cluster.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    pub hosts: usize,
    /// Of each host.
    pub executors: usize,
    /// Each host has a node service, from which all executors read what was written on the host.
    pub services: bool,
    /// Only the connections of one host are made.
    pub one_host: bool,
}

/// The connections of a host's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostConnections {
    /// Of each executor.
    pub executor: usize,
    /// Of these, to processes of other hosts.
    pub executor_to_others: usize,
    /// Of the service; 0 without one.
    pub service: usize,
    /// Of all processes of the host, to processes of other hosts.
    pub host_to_others: usize,
}

impl HostConnections {
    /// Returns the registered memory that `connections` connections take over verbs before they are
    /// busy.
    #[must_use]
    pub fn registered_bytes(connections: usize) -> u64 {
        connections as u64 * FIRST_CONNECTION_BYTES
    }
}

impl Cluster {
    fn processes_of_host(self) -> usize {
        self.executors + usize::from(self.services)
    }

    /// Returns the processes that executor `reader` reads from: all others, or the services of all
    /// hosts.
    fn owners(self, reader: usize) -> Vec<usize> {
        let of_host = self.processes_of_host();
        let is_service = |process: usize| process % of_host == self.executors;
        let all = 0..self.hosts * of_host;
        all.filter(|owner| *owner != reader && is_service(*owner) == self.services)
            .collect()
    }

    /// Runs the reads, and counts the connections of the first host when all have ended.
    ///
    /// # Errors
    /// Fails if a read fails, an invariant is violated, or the executors of the host differ.
    pub fn count(self, outputs: &MapOutputs) -> Result<HostConnections, Violation> {
        let of_host = self.processes_of_host();
        let nodes = self.hosts * of_host;
        let is_first = |process: usize| process < of_host;
        let readers = (0..nodes).filter(|process| process % of_host < self.executors);
        let reads = readers.flat_map(|reader| {
            let owners = self.owners(reader).into_iter();
            owners.map(move |owner| (reader, owner))
        });
        let reads: Vec<_> = reads
            .filter(|(reader, owner)| !self.one_host || is_first(*reader) || is_first(*owner))
            .collect();
        let mut dice = SimRng::new(1);
        let plan = RunPlan::of_reads(nodes, &reads, &mut dice, outputs);
        let mut run = Run::of(plan, dice, false, outputs)?;
        self.counted(&mut run, reads.len())
            .map_err(Violation::before)
    }

    fn counted(self, run: &mut Run<'_>, reads: usize) -> Result<HostConnections, String> {
        run.until_all_have_ended()?;
        if run.results.right != reads {
            return Err(format!(
                "{} of {reads} reads got their bytes",
                run.results.right
            ));
        }
        let of_host = self.processes_of_host();
        let counts: Vec<usize> = run.nodes[..of_host]
            .iter()
            .map(|node| lock(&run.world).network.sites[node.sites[0]].connections())
            .collect();
        let (executors, service) = counts.split_at(self.executors);
        let different: BTreeSet<_> = executors.iter().collect();
        if different.len() != 1 {
            return Err(format!(
                "executors of a host have {executors:?} connections"
            ));
        }
        run.close()?;
        // Within the host: with the service, or with each other executor.
        let (of_executor, of_host) = match self.services {
            true => (1, 2 * self.executors),
            false => (self.executors - 1, self.executors * (self.executors - 1)),
        };
        Ok(HostConnections {
            executor: executors[0],
            executor_to_others: executors[0] - of_executor,
            service: service.first().copied().unwrap_or(0),
            host_to_others: counts.iter().sum::<usize>() - of_host,
        })
    }
}
