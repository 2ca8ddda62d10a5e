use super::*;
use snow::Builder;

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn side(key: &str, ephemeral: &str, initiates: bool) -> snow::HandshakeState {
    let (key, ephemeral) = (hex(key), hex(ephemeral));
    let pattern = "Noise_XX_25519_AESGCM_SHA256".parse().unwrap();
    let builder = Builder::with_resolver(pattern, Box::new(Primitives::default()))
        .prologue(b"John Galt")
        .unwrap()
        .local_private_key(&key)
        .unwrap()
        .fixed_ephemeral_key_for_testing_only(&ephemeral);
    match initiates {
        true => builder.build_initiator().unwrap(),
        false => builder.build_responder().unwrap(),
    }
}

/// Compares with the test vector of this name that the Noise implementation `cacophony`
/// publishes.
#[test]
fn messages_are_those_of_other_implementations() {
    let mut sides = [
        side(
            "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
            "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
            true,
        ),
        side(
            "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
            "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
            false,
        ),
    ];
    let messages = [
        (
            &b"Ludwig von Mises"[..],
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
             4c756477696720766f6e204d69736573",
        ),
        (
            b"Murray Rothbard",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088437571\
             17acceb05bd7a45733bc22015c97a9d0cbaf41b80446d5988ff5127235d76b79eade\
             70f473d6a4ef521fdcbeda5340d01e028ba793fc059f2724a83af05f12dda0448a76\
             21a926b379a92477fd",
        ),
        (
            b"F. A. Hayek",
            "c90f1cf77eba4e50edb038991565e36c9758943a989229b6051244dc4fbecb694674\
             4b401af2ee1a5881b65fbb87fd07cb6a328ececc9ce6ce84c399dc332d4fd521fa4b\
             b7f467ce909395",
        ),
    ];
    for (number, (payload, expected)) in messages.into_iter().enumerate() {
        let [first, second] = &mut sides;
        let (from, to) = match number {
            1 => (second, first),
            _ => (first, second),
        };
        let (mut message, mut room) = ([0; 200], [0; 200]);
        let length = from.write_message(payload, &mut message).unwrap();
        assert_eq!(message[..length], hex(expected), "message {number}");
        let read = to.read_message(&message[..length], &mut room).unwrap();
        assert_eq!(&room[..read], payload);
    }
    let hash = hex("1b7aefb1125762aa21a252890d00af54519638b76437444538f9a52f21e2e0dc");
    assert_eq!(sides[0].get_handshake_hash(), hash);
}

#[test]
fn a_point_of_small_order_is_refused() {
    let mut own = X25519::default();
    own.set(&[7; KEY_BYTES]);
    let mut out = [0; KEY_BYTES];
    for point in [0, 1] {
        let mut public = [0; KEY_BYTES];
        public[0] = point;
        assert!(own.dh(&public, &mut out).is_err());
    }
    assert!(own.dh(&own.public, &mut out).is_ok());
}

#[test]
fn nothing_is_sealed_without_a_key() {
    let mut out = [9; 40];
    assert_eq!(AesGcm(None).encrypt(0, &[], b"plain", &mut out), 0);
    assert_eq!(out, [9; 40]);
    assert!(AesGcm(None).decrypt(0, &[], &[0; 20], &mut out).is_err());
}
