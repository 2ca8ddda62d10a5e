//! A frame's kind and body become one typed message, and back.

mod support;

use faro_wire::message::{Incoming, ToClient, ToCommands, ToMember, ToServer};
use faro_wire::{kind, WireError};
use support::samples;

/// Returns one message of every kind of the endpoint layer, with its kind and the bytes of its own
/// encoder.
fn every_kind() -> Vec<(u8, Vec<u8>, Incoming)> {
    let server = Incoming::ToServer;
    let client = Incoming::ToClient;
    let member = Incoming::ToMember;
    let commands = Incoming::ToCommands;
    vec![
        (
            kind::FETCH,
            samples::fetch().encode(),
            server(ToServer::Fetch(samples::fetch())),
        ),
        (
            kind::MORE_BUFFERS,
            samples::more_buffers().encode(),
            server(ToServer::MoreBuffers(samples::more_buffers())),
        ),
        (kind::CANCEL, Vec::new(), server(ToServer::Cancel)),
        (
            kind::FETCH_RESPONSE,
            samples::fetch_response().encode(),
            client(ToClient::FetchResponse(samples::fetch_response())),
        ),
        (
            kind::DATA_WRITTEN,
            samples::data_written().encode(),
            client(ToClient::DataWritten(samples::data_written())),
        ),
        (
            kind::READ_OFFER,
            samples::read_offer().encode(),
            client(ToClient::ReadOffer(samples::read_offer())),
        ),
        (
            kind::FAILED,
            samples::failed().encode(),
            client(ToClient::Failed(samples::failed())),
        ),
        (
            kind::JOIN,
            samples::join().encode(),
            member(ToMember::Join(samples::join())),
        ),
        (
            kind::CLEAR_TO_SEND,
            samples::clear_to_send().encode(),
            member(ToMember::ClearToSend(samples::clear_to_send())),
        ),
        (
            kind::DATA_READY,
            samples::data_ready().encode(),
            member(ToMember::DataReady(samples::data_ready())),
        ),
        (
            kind::ABORT,
            samples::abort().encode(),
            member(ToMember::Abort(samples::abort())),
        ),
        (
            kind::COMMAND,
            samples::command().encode(),
            commands(ToCommands::Command(samples::command())),
        ),
        (
            kind::COMMAND_ANSWER,
            samples::command_answer().encode(),
            commands(ToCommands::Answer(samples::command_answer())),
        ),
        (
            kind::COMMAND,
            samples::command_indexes().encode(),
            commands(ToCommands::Command(samples::command_indexes())),
        ),
        (
            kind::COMMAND_ANSWER,
            samples::command_content().encode(),
            commands(ToCommands::Answer(samples::command_content())),
        ),
    ]
}

#[test]
fn every_kind_makes_the_round_trip() {
    for (kind, body, message) in every_kind() {
        assert_eq!(Incoming::decode(kind, &body), Ok(message.clone()));
        assert_eq!(message.kind(), kind, "{message:?}");
        assert_eq!(message.encode(), body, "{message:?}");
    }
}

#[test]
fn every_other_kind_is_unknown() {
    let known: Vec<u8> = every_kind().into_iter().map(|(kind, ..)| kind).collect();
    for got in (0..=u8::MAX).filter(|kind| !known.contains(kind)) {
        // With an empty body and with one that another kind accepts.
        for body in [vec![], samples::fetch().encode()] {
            let decoded = Incoming::decode(got, &body);
            assert_eq!(decoded, Err(WireError::UnknownKind { got }));
        }
    }
}

#[test]
fn a_body_of_another_kind_is_refused() {
    for (kind, _, _) in every_kind() {
        for (other, body, _) in every_kind() {
            if kind != other {
                let decoded = Incoming::decode(kind, &body);
                assert!(
                    decoded.is_err(),
                    "{other:#x} read as {kind:#x}: {decoded:?}"
                );
            }
        }
    }
}

#[test]
fn a_message_with_bytes_behind_it_is_refused() {
    for (kind, mut body, message) in every_kind() {
        body.push(0);
        let decoded = Incoming::decode(kind, &body);
        let trailing = matches!(decoded, Err(WireError::Trailing { extra: 1, .. }));
        assert!(trailing, "{message:?}: {decoded:?}");
    }
    assert_eq!(
        Incoming::decode(kind::CANCEL, &[1, 2, 3]),
        Err(WireError::Trailing {
            what: "CANCEL",
            extra: 3
        })
    );
}
