//! X25519 by `ring`, for `snow`: its own takes more than two times as long, a third of the cost of a connection.

use ring::agreement::{EphemeralPrivateKey, PublicKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::sync::{Mutex, PoisonError};

/// Bytes of a key, public or private.
const KEY: usize = 32;

/// All by `ring`.
pub(super) struct Resolver;

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        RingResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(Exchange::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

/// An ephemeral key for one exchange: each end of the pattern NN has one.
#[derive(Default)]
struct Exchange {
    private: Mutex<Option<EphemeralPrivateKey>>,
    public: Option<PublicKey>,
}

impl Dh for Exchange {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY
    }

    fn priv_len(&self) -> usize {
        KEY
    }

    /// Keys are only generated here; setting one has no effect.
    fn set(&mut self, _private: &[u8]) {
        *self = Self::default();
    }

    /// From the operating system's generator.
    fn generate(&mut self, _rng: &mut dyn Random) -> Result<(), snow::Error> {
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| snow::Error::Rng)?;
        self.public = Some(private.compute_public_key().map_err(|_| snow::Error::Dh)?);
        self.private = Mutex::new(Some(private));
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        self.public.as_ref().map_or(&[], AsRef::as_ref)
    }

    fn privkey(&self) -> &[u8] {
        &[]
    }

    /// Fails for a public key of small order too (RFC 7748, section 6.1).
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let private = self.private.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(snow::Error::Dh)?;
        let public = UnparsedPublicKey::new(&X25519, public.get(..KEY).ok_or(snow::Error::Dh)?);
        let agreed = agree_ephemeral(private, &public, |secret| {
            out.iter_mut().zip(secret).for_each(|(place, byte)| *place = *byte);
        });
        agreed.map_err(|_| snow::Error::Dh)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MESSAGE, PATTERN, PROLOGUE, builder};
    use crate::key::Key;
    use snow::{Builder, HandshakeState};

    /// Both ends, one of them `snow` by itself.
    fn pair(ours_begins: bool) -> (HandshakeState, HandshakeState) {
        let key = Key::generate().expect("random");
        let pattern = PATTERN.parse().expect("a pattern");
        let others = Builder::new(pattern).prologue(PROLOGUE).expect("once").psk(0, key.bytes()).expect("it has one");
        let ours = builder(&key, PROLOGUE).expect("a pattern");
        if ours_begins {
            (ours.build_initiator().expect("all is there"), others.build_responder().expect("all is there"))
        } else {
            (others.build_initiator().expect("all is there"), ours.build_responder().expect("all is there"))
        }
    }

    #[test]
    fn another_implementation_agrees() {
        for ours_begins in [true, false] {
            let (mut client, mut server) = pair(ours_begins);
            let (mut first, mut second, mut none) = ([0; MESSAGE], [0; MESSAGE], [0; MESSAGE]);
            assert_eq!(client.write_message(&[], &mut first).expect("it fits"), MESSAGE);
            server.read_message(&first, &mut none).expect("the same key");
            assert_eq!(server.write_message(&[], &mut second).expect("it fits"), MESSAGE);
            client.read_message(&second, &mut none).expect("the same key");
            assert_eq!(client.dangerously_get_raw_split(), server.dangerously_get_raw_split());
        }
    }

    #[test]
    fn a_public_key_of_small_order_is_refused() {
        use super::{Dh as _, Exchange};
        let mut exchange = Exchange::default();
        let mut rng = super::CryptoResolver::resolve_rng(&super::Resolver).expect("there is one");
        exchange.generate(&mut *rng).expect("random");
        assert!(exchange.dh(&[0; 32], &mut [0; 32]).is_err());
    }

    #[test]
    fn a_key_is_good_for_one_exchange() {
        use super::{Dh as _, Exchange};
        let (mut one, mut other) = (Exchange::default(), Exchange::default());
        let mut rng = super::CryptoResolver::resolve_rng(&super::Resolver).expect("there is one");
        one.generate(&mut *rng).expect("random");
        other.generate(&mut *rng).expect("random");
        let (mut ours, mut theirs) = ([0; 32], [0; 32]);
        one.dh(other.pubkey(), &mut ours).expect("a good key");
        other.dh(one.pubkey(), &mut theirs).expect("a good key");
        assert_eq!(ours, theirs);
        assert!(one.dh(other.pubkey(), &mut ours).is_err());
    }
}
