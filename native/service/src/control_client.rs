//! Tells services of an application on any hosts that shuffles were removed or that the application
//! has ended. `told` hears it.

use crate::replica::ControlId;
use crate::serving::security;
use faro_endpoint::{Budget, Config, Endpoint, EndpointError, FabricChoice};
use faro_wire::BlockId;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Services that are told at a time.
const AT_ONCE: usize = 64;
/// Most blocks of a request to each, and so most shuffles that one call may name.
pub const MAX_SHUFFLES: usize = 1_024;
/// An arena of two slabs, of which next to nothing is used.
const MEMORY: u64 = Budget::OWN_BYTES;

/// A member of an application, as its services know it.
pub struct ApplicationMember {
    /// Spark's id.
    pub application: String,
    /// Whether the application's connections are sealed.
    pub sealed: bool,
    /// The secret of Spark's authentication; empty: it does not authenticate.
    pub secret: Zeroizing<Vec<u8>>,
}

/// Tells the services with those cards which shuffles were removed, up to `MAX_SHUFFLES`, and
/// whether the application has ended. Returns the number of services that have answered within
/// `timeout`.
///
/// # Errors
/// There is no endpoint.
pub fn tell(
    member: &ApplicationMember,
    cards: &[Vec<u8>],
    removed: &[u32],
    ended: bool,
    timeout: Duration,
) -> Result<usize, EndpointError> {
    let endpoint = Endpoint::start(Config {
        name: "driver".to_owned(),
        // Each service listens on TCP. No peer has this endpoint's card, so none connects to it.
        fabric: FabricChoice::Tcp,
        memory_limit: MEMORY,
        security: security(&member.application, member.sealed, &member.secret),
        ..Config::default()
    })?;
    let mut news: Vec<BlockId> = removed
        .iter()
        .take(MAX_SHUFFLES)
        .map(|shuffle| ControlId::Removed(*shuffle).block(1, 0))
        .collect();
    if ended {
        news = vec![ControlId::Ended.block(1, 0)];
    }
    let deadline = Instant::now() + timeout;
    let told = cards
        .chunks(AT_ONCE)
        .map(|some| tell_some(&endpoint, some, &news, deadline))
        .sum();
    endpoint.close();
    Ok(told)
}

fn tell_some(endpoint: &Endpoint, cards: &[Vec<u8>], news: &[BlockId], deadline: Instant) -> usize {
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut under_way = HashSet::new();
    for card in cards {
        if left().is_zero() {
            break;
        }
        let peer = endpoint.add_peer(card);
        match peer.and_then(|peer| endpoint.fetch(peer, news, left())) {
            Ok(request) => {
                under_way.insert(request);
            }
            Err(error) => log::debug!("a service is not told: {error}"),
        }
    }
    let (mut told, mut completions) = (0, Vec::new());
    while !under_way.is_empty() && !left().is_zero() {
        endpoint.completions(AT_ONCE, left(), &mut completions);
        for completion in completions.drain(..) {
            match &completion.outcome {
                // Whatever the status of the blocks is, which no service has: it has read the
                // question.
                Ok(_) => {}
                Err(failure) => log::debug!("a service is not told: {}", failure.detail),
            }
            if completion.last && under_way.remove(&completion.request) {
                told += usize::from(completion.outcome.is_ok());
            }
        }
    }
    told
}
