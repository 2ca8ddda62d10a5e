//! Writes of servers into this client's buffers: the part of [`FetchService`] for them.

use super::FetchService;
use crate::net::Net;
use faro_fabric::{Exposure, RevokeStatus};
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::DataWritten;
use faro_wire::WireError;

impl FetchService {
    /// Handles the server's report that it has written into offered buffers.
    pub(super) fn written(
        &mut self,
        net: &mut Net,
        id: u64,
        written: &DataWritten,
    ) -> Result<(), WireError> {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return Ok(());
        };
        let connection = attempt.connection;
        for buffer in &written.buffers {
            let key = attempt.expect(buffer)?.key;
            // The lease returns only when its buffer is revoked. Once the server has reported the
            // write, that takes effect at once.
            let RevokeStatus::Now(Exposure::Writable(lease)) = net.revoke(key) else {
                let what = "key of an offered buffer";
                return Err(WireError::BadValue { what, got: key });
            };
            if let Err(corrupt) = attempt.take(lease, buffer) {
                self.counters.crc_errors.add(1);
                let detail = format!(
                    "bytes arrived with CRC-32C {:#010x} where the server read {:#010x}",
                    corrupt.got, corrupt.expected
                );
                self.fault(net, id, FetchErrorCode::Corrupt, &detail);
                return Ok(());
            }
            self.memory.note_arrived(buffer.length.get().into());
        }
        attempt.request.was_taken = false;
        attempt.check_last(written.last)?;
        if let Some(ready) = attempt.ready(written.last, &self.memory) {
            let request = &mut attempt.request;
            let last = written.last && request.is_last_part();
            self.queue.deliver(request, net.kind(), ready, last);
        }
        if written.last {
            self.next_part(net, id);
        } else {
            self.await_memory(id);
            self.offer_buffers(net);
        }
        // The revoked buffers no longer take room on the connection.
        self.has_room(net, connection);
        Ok(())
    }
}
