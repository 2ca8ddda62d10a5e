//! A peer that says anything: as a connector, as an acceptor, and in records. No message that the other side did not
//! make passes.

#![no_main]

use faro_secure::{Acceptor, Connector, Opener, Prologue, Protection, Psk, Secret, StaticKey};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let keys = (
        Psk::derive(&Secret::new([7; 32]), None, "fuzz"),
        StaticKey::public(10),
        StaticKey::public(20),
    );
    let (Ok(psk), Ok(near), Ok(far)) = keys else {
        panic!("no keys");
    };
    let prologue = Prologue {
        versions: [2, 2],
        fabric: b't',
        protection: Protection::Sealed,
        acceptor: far.id(),
    };
    let hello = || Connector::hello(&near, &psk, &prologue);
    let welcome = |hello: &[u8]| Acceptor::welcome(&far, &psk, &prologue, 2, hello);
    match choice % 4 {
        0 => assert!(welcome(bytes).is_err()),
        1 => {
            if let Ok((connector, _)) = hello() {
                assert!(connector.welcomed(bytes).is_err());
            }
        }
        2 => {
            let Ok((connector, first)) = hello() else {
                return;
            };
            let Ok((acceptor, second)) = welcome(&first) else {
                return;
            };
            assert!(acceptor.proven(bytes).is_err());
            if let Ok(mut welcomed) = connector.welcomed(&second) {
                assert!(welcomed.keys.opener.open(&mut bytes.to_vec()).is_err());
            }
        }
        _ => {
            if let Some(header) = bytes.first_chunk() {
                if let Ok(length) = Opener::length(*header) {
                    assert!((21..=65_556).contains(&length));
                }
            }
        }
    }
});
