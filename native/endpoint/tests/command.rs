//! Commands to peers: answered, refused, or ended in time; on virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;
#[path = "support/virtual_time.rs"]
mod virtual_time;

use faro_endpoint::{
    CommandAnswer, CommandError, CommandHandler, Config, Endpoint, EndpointError, FabricChoice,
    ReplySender,
};
use faro_fabric::FabricKind;
use faro_simulation::VirtualNetwork;
use faro_wire::kind;
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand};
use scripted::{card, ScriptedPeer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;
use support::{config, TIMEOUT};
use virtual_time::endpoint;

/// Accepts what it does not have yet, up to two, and then is busy. Pages are sent by another thread.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<MemberCommand>>);

impl CommandHandler for Notes {
    fn handle(&self, command: MemberCommand, reply: ReplySender) {
        if let MemberCommand::SendPage(page) = command {
            let content = CommandReply::Content(vec![page as u8; 100_000]);
            std::thread::spawn(move || reply.send(content));
            return;
        }
        let mut all = self.0.lock().unwrap();
        let status = match all.len() {
            2 => CommandStatus::Busy,
            _ => CommandStatus::Accepted,
        };
        if status == CommandStatus::Accepted {
            all.push(command);
        }
        reply.send(CommandReply::Status(status));
    }
}

fn network() -> VirtualNetwork {
    VirtualNetwork::new(FabricKind::Tcp)
}

fn client(network: &VirtualNetwork) -> Arc<Endpoint> {
    endpoint(network, config("driver", FabricChoice::Tcp))
}

/// The answer to a command of that endpoint.
fn tell(
    network: &VirtualNetwork,
    client: &Endpoint,
    peer: u64,
    command: MemberCommand,
    timeout: Duration,
) -> Result<CommandReply, CommandError> {
    let (sender, answers) = mpsc::channel();
    client.command(peer, command, timeout, sender).unwrap();
    let mut answer = None;
    network.until("an answer", || {
        answer = answers.try_recv().ok();
        answer.is_some()
    });
    assert!(
        answers.try_recv() == Err(mpsc::TryRecvError::Disconnected),
        "one answer"
    );
    let CommandAnswer { peer: of, outcome } = answer.unwrap();
    assert_eq!(of, peer);
    outcome
}

#[test]
fn a_command_is_handled_and_answered() {
    let network = network();
    let notes = Arc::new(Notes::default());
    let handler: Arc<dyn CommandHandler> = Arc::<Notes>::clone(&notes);
    let service = Config {
        commands: Some(handler),
        ..config("service", FabricChoice::Tcp)
    };
    let (service, client) = (endpoint(&network, service), client(&network));
    let peer = client.add_peer(&service.card()).unwrap();
    let removed = MemberCommand::ShufflesRemoved(vec![3, 9]);
    for (command, status) in [
        (removed.clone(), CommandStatus::Accepted),
        (MemberCommand::ApplicationEnded, CommandStatus::Accepted),
        (removed.clone(), CommandStatus::Busy),
    ] {
        let answer = tell(&network, &client, peer, command, TIMEOUT);
        assert_eq!(answer, Ok(CommandReply::Status(status)));
    }
    for page in [7, 8] {
        let answer = tell(
            &network,
            &client,
            peer,
            MemberCommand::SendPage(page),
            TIMEOUT,
        );
        assert_eq!(answer, Ok(CommandReply::Content(vec![page as u8; 100_000])));
    }
    let noted = notes.0.lock().unwrap().clone();
    assert_eq!(noted, [removed, MemberCommand::ApplicationEnded]);
}

#[test]
fn an_endpoint_without_a_handler_says_so() {
    let network = network();
    let (executor, client) = (client(&network), client(&network));
    let peer = client.add_peer(&executor.card()).unwrap();
    let answer = tell(
        &network,
        &client,
        peer,
        MemberCommand::ApplicationEnded,
        TIMEOUT,
    );
    assert_eq!(answer, Ok(CommandReply::Status(CommandStatus::Unsupported)));
}

#[test]
fn a_silent_peer_ends_a_command_at_its_deadline() {
    let network = network();
    let silent = ScriptedPeer::start_in(&network, Box::new(|_, _, _, _, _| {}));
    let client = client(&network);
    let peer = client.add_peer(&silent.card).unwrap();
    let start = network.now();
    let timeout = Duration::from_secs(7);
    let answer = tell(
        &network,
        &client,
        peer,
        MemberCommand::ApplicationEnded,
        timeout,
    );
    assert_eq!(answer, Err(CommandError::TimedOut));
    assert!(network.now() - start >= timeout);
}

#[test]
fn a_command_whose_connection_ends_is_sent_once_more() {
    let network = network();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let rude = ScriptedPeer::start_in(
        &network,
        Box::new(move |stage, peer, _, _, message| {
            assert_eq!(message.kind, kind::COMMAND);
            count.fetch_add(1, Ordering::SeqCst);
            stage.hang_up(peer);
        }),
    );
    let client = client(&network);
    let peer = client.add_peer(&rude.card).unwrap();
    let answer = tell(
        &network,
        &client,
        peer,
        MemberCommand::ApplicationEnded,
        TIMEOUT,
    );
    assert!(
        matches!(
            answer,
            Err(CommandError::ConnectionLost(_) | CommandError::Unreachable(_))
        ),
        "{answer:?}"
    );
    assert!((1..=2).contains(&sent.load(Ordering::SeqCst)));
}

#[test]
fn who_is_not_there_is_named_and_commands_are_bounded() {
    let network = network();
    let client = client(&network);
    let absent = client.add_peer(&card(77, "node-77:0")).unwrap();
    let answer = tell(
        &network,
        &client,
        absent,
        MemberCommand::ApplicationEnded,
        TIMEOUT,
    );
    assert!(
        matches!(answer, Err(CommandError::Unreachable(_))),
        "{answer:?}"
    );
    let (sender, _answers) = mpsc::channel();
    let command = || {
        client.command(
            absent,
            MemberCommand::ApplicationEnded,
            TIMEOUT,
            sender.clone(),
        )
    };
    // The route is in back-off, so each ends at once and leaves its place.
    for _ in 0..5_000 {
        command().unwrap();
    }
    let silent = ScriptedPeer::start_in(&network, Box::new(|_, _, _, _, _| {}));
    let silent = client.add_peer(&silent.card).unwrap();
    let full = (0..5_000).find_map(|at| {
        let sent = client.command(
            silent,
            MemberCommand::ApplicationEnded,
            TIMEOUT,
            sender.clone(),
        );
        sent.err().map(|error| (at, error))
    });
    let (at, error) = full.expect("a bound");
    assert!(matches!(error, EndpointError::Full { limit } if limit == at));
    client.close();
    let closed = client.command(
        silent,
        MemberCommand::ApplicationEnded,
        TIMEOUT,
        sender.clone(),
    );
    assert!(matches!(closed, Err(EndpointError::Closed)));
}
