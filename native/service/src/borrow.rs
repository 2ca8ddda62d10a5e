//! An executor's side of what is lent: asks for the files of map outputs, and gives them to its endpoint.

use crate::client::{Client, ClientError};
use crate::message::{LoanState, Reply, Request, MAX_LEND, MAX_LEND_FILES};
use crate::socket::{receive_lent, send, ReceivedMessage};
use faro_endpoint::Endpoint;
use faro_wire::OutputId;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

/// Readers at a time, of which each has its share of what an endpoint may borrow.
const READERS: usize = 32;

/// Some map outputs of one shuffle, in the order of the question.
struct Question<'a> {
    shuffle: u32,
    maps: &'a [i64],
    /// Their files too.
    files: bool,
}

impl Client {
    /// Borrows the files of map outputs for `endpoint`, which reads them then (`Endpoint::local`). Returns for each
    /// output whether it is to be read so. At most a thirty-second of what the endpoint may borrow is borrowed now, so
    /// that the readers of 32 tasks do not push out each other's. The others are to be borrowed by a later call: they are
    /// not asked for, unless the service has none of the first ones. Then it says which of them it has.
    ///
    /// # Errors
    /// Outputs that were borrowed before the error stay readable.
    pub fn borrow(
        &self,
        endpoint: &Endpoint,
        shuffle: u32,
        maps: &[i64],
    ) -> Result<Vec<bool>, ClientError> {
        let is_here = |&map_id: &i64| {
            endpoint.has_local(OutputId {
                shuffle_id: shuffle,
                map_id,
            })
        };
        let mut readable: Vec<bool> = maps.iter().map(is_here).collect();
        let asked: Vec<usize> = (0..maps.len()).filter(|&at| !readable[at]).collect();
        let mut asked = asked.as_slice();
        let mut room = (endpoint.max_lent() / READERS).max(1);
        let mut are_lent = false;
        while !asked.is_empty() {
            let files = room > 0;
            if !files && are_lent {
                asked.iter().for_each(|&at| readable[at] = true);
                break;
            }
            let max = match files {
                true => room.min(MAX_LEND_FILES),
                false => MAX_LEND,
            };
            let (now, rest) = asked.split_at(asked.len().min(max));
            let of_now: Vec<i64> = now.iter().map(|&at| maps[at]).collect();
            let question = Question {
                shuffle,
                maps: &of_now,
                files,
            };
            for (&at, lent) in now.iter().zip(self.ask_for(&question, endpoint)?) {
                readable[at] = lent != LoanState::NotHere;
                are_lent |= readable[at];
            }
            room = room.saturating_sub(max);
            asked = rest;
        }
        Ok(readable)
    }

    /// The endpoint has the files before another message is sent. So when the service knows that a shuffle is
    /// removed, no file of it can still arrive.
    fn ask_for(
        &self,
        question: &Question<'_>,
        endpoint: &Endpoint,
    ) -> Result<Vec<LoanState>, ClientError> {
        self.on_connection(|socket| {
            let (all, descriptors) = question.send(socket)?;
            if question.files {
                question.keep(&all, descriptors, endpoint)?;
            }
            Ok(all)
        })
    }
}

impl Question<'_> {
    /// Asks, and checks that as much came as was asked for.
    fn send(&self, socket: &OwnedFd) -> Result<(Vec<LoanState>, Vec<OwnedFd>), ClientError> {
        let request = Request::Lend {
            shuffle: self.shuffle,
            files: self.files,
            maps: self.maps.to_vec(),
        };
        send(socket.as_fd(), &request.encode(), &[])?;
        let ReceivedMessage { bytes, descriptors } = receive_lent(socket.as_fd())?;
        match Reply::decode(&bytes)? {
            Reply::Lent(all) => {
                let wanted = all.iter().map(|lent| lent.files()).sum::<usize>();
                let wanted = wanted * usize::from(self.files);
                match (all.len(), descriptors.len()) == (self.maps.len(), wanted) {
                    true => Ok((all, descriptors)),
                    false => Err(ClientError::Unexpected),
                }
            }
            Reply::Refused { why, text } => Err(ClientError::Refused { why, text }),
            Reply::Welcome { .. } | Reply::Done | Reply::Behind(_) => Err(ClientError::Unexpected),
        }
    }

    fn keep(
        &self,
        all: &[LoanState],
        descriptors: Vec<OwnedFd>,
        endpoint: &Endpoint,
    ) -> Result<(), ClientError> {
        let mut files = descriptors.into_iter().map(File::from);
        let mut next = || files.next().ok_or(ClientError::Unexpected);
        for (&map_id, lent) in self.maps.iter().zip(all) {
            let (index, data) = match lent {
                LoanState::NotHere => continue,
                LoanState::Empty => (next()?, None),
                LoanState::Whole => (next()?, Some(next()?)),
            };
            let id = OutputId {
                shuffle_id: self.shuffle,
                map_id,
            };
            endpoint.lend(id, index, data)?;
        }
        Ok(())
    }
}
