//! Messages and records: what is written is read, and no bytes make the reader panic.

#![allow(clippy::unwrap_used)]

use faro_service::{Hello, LoanState, Record, Refusal, Reply, Request, Status, Token};
use faro_wire::OutputId;
use proptest::prelude::*;

fn requests() -> impl Strategy<Value = Request> {
    let name = "[a-z0-9_-]{1,40}";
    prop_oneof![
        (
            name,
            name,
            any::<bool>(),
            any::<[u8; 32]>(),
            prop::collection::vec(any::<u8>(), 0..64)
        )
            .prop_map(|(application, executor, sealed, token, secret)| {
                Request::Hello(Hello {
                    application,
                    executor,
                    sealed,
                    token: Token::new(token),
                    secret: secret.into(),
                })
            }),
        (0..=i32::MAX as u32, 0..=i64::MAX, any::<bool>()).prop_map(
            |(shuffle_id, map_id, has_data)| Request::Output {
                id: OutputId { shuffle_id, map_id },
                has_data,
            }
        ),
        (
            0..=i32::MAX as u32,
            any::<bool>(),
            prop::collection::vec(0..=i64::MAX, 1..=126)
        )
            .prop_map(|(shuffle, files, maps)| Request::Lend {
                shuffle,
                files,
                maps
            }),
        (0..=i32::MAX as u32).prop_map(|shuffle| Request::Forget { shuffle }),
        Just(Request::End),
        Just(Request::Status),
        Just(Request::Behind),
        (
            any::<u8>(),
            any::<u32>(),
            any::<u32>(),
            proptest::collection::vec(any::<u8>(), 0..4_097)
        )
            .prop_map(|(replicas, at, of, card)| Request::Host {
                replicas,
                at,
                of,
                card
            }),
    ]
}

proptest! {
    #[test]
    fn a_request_is_read_back(request in requests()) {
        let bytes = request.encode();
        let again = Request::decode(&bytes).unwrap();
        prop_assert_eq!(&*again.encode(), &*bytes);
        // Shorter or longer, it is none.
        for end in 0..bytes.len() {
            prop_assert!(Request::decode(&bytes[..end]).is_err());
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        prop_assert!(Request::decode(&longer).is_err());
    }

    #[test]
    fn an_answer_is_read_back(card in prop::collection::vec(any::<u8>(), 0..4096), text in ".{0,400}") {
        for reply in [
            Reply::Welcome { card: card.clone() },
            Reply::Done,
            Reply::Lent(vec![LoanState::NotHere, LoanState::Empty, LoanState::Whole]),
            Reply::Lent(vec![LoanState::Whole; 1_000]),
            Reply::Behind(card.len() as u64),
            Reply::Refused { why: Refusal::Quota, text: text.clone() },
        ] {
            prop_assert_eq!(Reply::decode(&reply.encode()).unwrap(), reply);
        }
    }

    #[test]
    fn a_status_is_read_back(version in "[a-z0-9.-]{1,40}", figures in any::<[u64; 23]>()) {
        let [applications, executors, outputs, output_bytes, linked, kept_open, refused, removed, served_blocks,
             served_bytes, lent, replicas, replicas_behind, copied_bytes, copies_refused, memory,
             memory_limit, tables, tables_limit, outputs_limit, passed_on, connections_refused,
             handshakes_failed] = figures;
        let status = Status {
            version, applications, executors, outputs, output_bytes, linked, kept_open, refused, removed,
            served_blocks, served_bytes, lent,
            replicas, replicas_behind, copied_bytes, copies_refused, memory, memory_limit, tables, tables_limit,
            outputs_limit, passed_on, connections_refused, handshakes_failed,
        };
        let bytes = status.encode();
        prop_assert_eq!(Status::decode(&bytes).unwrap(), status);
        for end in 0..bytes.len() {
            prop_assert!(Status::decode(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Request::decode(&bytes);
        let _ = Reply::decode(&bytes);
        let _ = Status::decode(&bytes);
        let _ = Record::decode(&bytes);
    }

    #[test]
    fn no_message_asks_for_too_many(files in any::<bool>(), more in 0usize..100) {
        for count in [0, if files { 127 } else { 1_001 } + more] {
            let request = Request::Lend { shuffle: 1, files, maps: vec![7; count] };
            prop_assert!(Request::decode(&request.encode()).is_err());
        }
    }

    #[test]
    fn ids_that_spark_does_not_have_are_refused(shuffle in 1u32 << 31.., map in i64::MIN..0) {
        for id in [OutputId { shuffle_id: shuffle, map_id: 0 }, OutputId { shuffle_id: 0, map_id: map }] {
            let bytes = Request::Output { id, has_data: true }.encode();
            prop_assert!(Request::decode(&bytes).is_err());
        }
    }
}
