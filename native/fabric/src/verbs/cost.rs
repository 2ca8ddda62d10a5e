//! Measures what registering memory costs on a device, for benchmarks.

use super::device::{Device, Registration, VerbsError, VerbsOptions};
use std::net::IpAddr;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An open device to measure on.
pub struct CostProbe {
    device: Arc<Device>,
}

/// Cost of one registration.
#[derive(Debug, Clone, Copy)]
pub struct RegistrationCost {
    /// `ibv_reg_mr`.
    pub register: Duration,
    /// `ibv_dereg_mr`.
    pub deregister: Duration,
}

impl CostProbe {
    /// Opens the device that a fabric with these options would use.
    ///
    /// # Errors
    /// Returns what is missing and how to fix it.
    pub fn open(options: &VerbsOptions, near: IpAddr) -> Result<Self, VerbsError> {
        let device = Device::open(options, near)?;
        Ok(Self { device })
    }

    /// Returns the chosen device and the reason for the choice.
    #[must_use]
    pub fn describe(&self) -> String {
        self.device.describe()
    }

    /// Registers all of `memory` as a fabric would, and de-registers it.
    ///
    /// # Errors
    /// Returns `Register`.
    pub fn measure(&self, memory: &mut [u8]) -> Result<RegistrationCost, VerbsError> {
        let start = Instant::now();
        // SAFETY: the memory is borrowed for longer than the registration lives, and its rkey is
        // given to no peer.
        let registration = unsafe {
            Registration::of_range(
                &self.device,
                NonNull::from(&mut *memory).cast(),
                memory.len(),
                faro_pool::Access::ReadWrite,
            )
        }?;
        let register = start.elapsed();
        let start = Instant::now();
        drop(registration);
        Ok(RegistrationCost {
            register,
            deregister: start.elapsed(),
        })
    }
}
