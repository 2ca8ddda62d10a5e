//! Tells services of an application on any hosts that shuffles were removed or that the application
//! has ended. `control_inbox` receives it.

use crate::serving::security;
use faro_endpoint::{Budget, Config, Endpoint, EndpointError, FabricChoice};
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand, MAX_COMMAND_IDS};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Services that get the command at a time.
const AT_ONCE: usize = 64;
/// Most shuffles that one call may name.
pub const MAX_SHUFFLES: usize = MAX_COMMAND_IDS as usize;
/// The smallest arena: commands need almost no memory.
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
/// whether the application has ended. Returns the number of services that have said within
/// `timeout` that they will do it.
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
    let command = match (ended, removed) {
        (true, _) => MemberCommand::ApplicationEnded,
        (false, []) => return Ok(0),
        (false, some) => {
            MemberCommand::ShufflesRemoved(some[..some.len().min(MAX_SHUFFLES)].to_vec())
        }
    };
    let endpoint = Endpoint::start(Config {
        name: "driver".to_owned(),
        // Each service listens on TCP. No peer has this endpoint's card, so none connects to it.
        fabric: FabricChoice::Tcp,
        memory_limit: MEMORY,
        security: security(&member.application, member.sealed, &member.secret),
        ..Config::default()
    })?;
    let deadline = Instant::now() + timeout;
    let accepted = cards
        .chunks(AT_ONCE)
        .map(|some| tell_some(&endpoint, some, &command, deadline))
        .sum();
    endpoint.close();
    Ok(accepted)
}

fn tell_some(
    endpoint: &Endpoint,
    cards: &[Vec<u8>],
    command: &MemberCommand,
    deadline: Instant,
) -> usize {
    let left = || deadline.saturating_duration_since(Instant::now());
    let (sender, answers) = mpsc::channel();
    for card in cards {
        let peer = endpoint.add_peer(card);
        let sent =
            peer.and_then(|peer| endpoint.command(peer, command.clone(), left(), sender.clone()));
        if let Err(error) = sent {
            log::debug!("a service gets no command: {error}");
        }
    }
    // `answers` ends with the last command.
    drop(sender);
    let mut accepted = 0;
    for answer in answers {
        match answer.outcome {
            Ok(CommandReply::Status(CommandStatus::Accepted)) => accepted += 1,
            Ok(reply) => log::debug!("a service refuses a command: {reply:?}"),
            Err(error) => log::debug!("a service has not answered a command: {error}"),
        }
    }
    accepted
}
