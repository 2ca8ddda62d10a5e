//! One process: an endpoint, its Java side, and its caller.

use crate::caller::{check, PendingRequest};
use crate::core::Time;
use crate::fabric::{SimulatedFabric, World};
use crate::outputs::MapOutputs;
use crate::plan::RunPlan;
use faro_endpoint::{Completion, Config, ExchangeConfig, FabricChoice, ManualEndpoint};
use faro_fabric::Fabric;
use faro_pool::{Lease, Pool, MIN_LIMIT_BYTES};
use faro_secure::{Secret, StaticKey};
use faro_wire::BlockId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of processes that a node has over a run, for keys that do not repeat.
const LIVES: u128 = 1_000;

/// Blocks that the caller keeps.
pub(crate) struct KeptBlocks {
    pub(crate) until: Time,
    completion: Completion,
    blocks: Vec<BlockId>,
}

/// The kinds of steps that are planned for a process.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PlannedSteps {
    pub(crate) files: bool,
    pub(crate) questions: bool,
    pub(crate) completions: bool,
}

/// A node's process.
pub(crate) struct Node {
    pub(crate) endpoint: ManualEndpoint,
    pub(crate) pool: Arc<Pool>,
    /// The sites of its fabrics, in the order of its progress threads.
    pub(crate) sites: Vec<usize>,
    pub(crate) life: u128,
    /// The node's handles of other processes, by node and life.
    peers: BTreeMap<(usize, u128), u64>,
    pub(crate) pending: BTreeMap<u64, PendingRequest>,
    pub(crate) kept: Vec<KeptBlocks>,
    pub(crate) hog: Vec<Lease>,
    pub(crate) planned: PlannedSteps,
    /// The time before which it takes no step.
    pub(crate) asleep_until: Option<Time>,
}

impl Node {
    /// Starts the node's process number `life`.
    ///
    /// # Errors
    /// Fails if the endpoint does not start.
    pub(crate) fn start(
        world: &Arc<Mutex<World>>,
        plan: &RunPlan,
        node: usize,
        life: u128,
    ) -> Result<Self, String> {
        let of = &plan.nodes[node];
        let config = Config {
            name: format!("node-{node}"),
            fabric: FabricChoice::Auto,
            memory_limit: MIN_LIMIT_BYTES,
            idle_release: plan.idle_release,
            stages_outputs: of.stages_outputs,
            regions: of.regions,
            connection_idle: plan.connection_idle,
            request_timeout: plan.timeout,
            exchange: ExchangeConfig {
                policy: plan.policy,
                ..ExchangeConfig::default()
            },
            ..Config::default()
        };
        let number = node as u128 * LIVES + life + 1;
        let key = StaticKey::public(number).map_err(|error| error.to_string())?;
        let secret = Secret::new([number as u8; 32]);
        let (mut sites, mut arena) = (Vec::new(), None);
        let endpoint = ManualEndpoint::start(config, key, secret, |identity, pool| {
            arena = Some(Arc::clone(pool));
            let fabrics = of.fabrics.iter().enumerate().map(|(place, kind)| {
                let fabric = SimulatedFabric::new(world, (node, place), *kind, identity, of.pace);
                sites.push(fabric.site());
                Box::new(fabric) as Box<dyn Fabric>
            });
            fabrics.collect()
        });
        Ok(Self {
            endpoint: endpoint.map_err(|error| error.to_string())?,
            pool: arena.ok_or("an endpoint without an arena")?,
            sites,
            life,
            peers: BTreeMap::new(),
            pending: BTreeMap::new(),
            kept: Vec::new(),
            hog: Vec::new(),
            planned: PlannedSteps::default(),
            asleep_until: None,
        })
    }

    /// Returns its handle of another process, and adds the peer by its card if it is new.
    ///
    /// # Errors
    /// Fails if the endpoint refuses the card.
    pub(crate) fn peer(&mut self, who: (usize, u128), card: &[u8]) -> Result<u64, String> {
        if let Some(handle) = self.peers.get(&who) {
            return Ok(*handle);
        }
        let handle = self.endpoint.endpoint().add_peer(card);
        let handle = handle.map_err(|error| error.to_string())?;
        self.peers.insert(who, handle);
        Ok(handle)
    }

    /// Resolves map outputs for the endpoint, as its Java side would.
    pub(crate) fn answer_questions(&mut self, outputs: &MapOutputs) {
        let endpoint = self.endpoint.endpoint();
        for id in endpoint.unresolved(64, Duration::ZERO) {
            endpoint.resolve(id, outputs.files(id));
        }
    }

    /// Keeps a completion for the caller until a time.
    pub(crate) fn keep(&mut self, until: Time, completion: Completion, blocks: Vec<BlockId>) {
        self.kept.push(KeptBlocks {
            until,
            completion,
            blocks,
        });
    }

    /// Drops the completions that the caller has kept for long enough, and checks that their bytes
    /// have not changed.
    ///
    /// # Errors
    /// Fails if bytes have changed.
    pub(crate) fn release(&mut self, now: Time, outputs: &MapOutputs) -> Result<(), String> {
        let (due, kept) = std::mem::take(&mut self.kept)
            .into_iter()
            .partition::<Vec<_>, _>(|kept| kept.until <= now);
        self.kept = kept;
        for kept in due {
            if let Ok(delivery) = &kept.completion.outcome {
                check(delivery, &kept.blocks, outputs)
                    .map_err(|error| format!("blocks that the caller keeps: {error}"))?;
            }
        }
        Ok(())
    }

    /// Returns a counter of the endpoint; 0 if the name is unknown.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let counters = self.endpoint.endpoint().counters();
        let found = counters.iter().find(|(got, _)| got == name);
        found.map_or(0, |(_, value)| *value)
    }
}

/// Checks that all memory of an arena was returned.
///
/// # Errors
/// Fails if some memory is leased.
pub(crate) fn no_lease_is_out(pool: &Pool) -> Result<(), String> {
    match pool.counters().leased_bytes {
        0 => Ok(()),
        bytes => Err(format!("{bytes} bytes of the arena are leased")),
    }
}
