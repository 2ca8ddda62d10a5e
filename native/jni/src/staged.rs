//! Data files of map outputs that are being written: their bytes, for the arena.

use crate::endpoints;
use crate::registry::{lock, Registry};
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_endpoint::StagedFile;
use jni::objects::{JByteArray, JClass};
use jni::sys::{jboolean, jint, jlong};
use jni::EnvUnowned;
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;

static STAGED: Registry<Arc<Mutex<Option<StagedFile>>>> = Registry::new();

/// Takes the file of a handle; `None` for 0 and for a file that was taken or dropped.
pub fn take(handle: jlong) -> Option<StagedFile> {
    let shared = STAGED.remove(handle as u64)?;
    let staged = lock(&shared).take();
    staged
}

/// `Native.stage`: returns a handle; 0 if the endpoint stages no files.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_stage<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let staged = endpoints::get(endpoint)?.endpoint.stage();
        Ok(staged.map_or(0, |staged| {
            STAGED.insert(Arc::new(Mutex::new(Some(staged)))) as jlong
        }))
    })
    .resolve::<TypedErrors>()
}

/// Implements `Native.stageBytes`: appends the file's next bytes. Returns false if no more are
/// wanted.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_stageBytes<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: JByteArray<'local>,
    offset: jint,
    length: jint,
) -> jboolean {
    env.with_env(|env| -> EntryResult<jboolean> {
        let not_held = || Failure::NotHeld {
            what: "staged file",
            handle: handle as u64,
        };
        let shared = STAGED.get(handle as u64).ok_or_else(not_held)?;
        let mut staged = lock(&shared);
        let staged = staged.as_mut().ok_or_else(not_held)?;
        let mut done: jint = 0;
        while done < length {
            let room = staged.room();
            let now = room.len().min((length - done) as usize);
            if now == 0 {
                return Ok(false);
            }
            let values = <[i8]>::mut_from_bytes(&mut room[..now])
                .map_err(|error| Failure::Argument(error.to_string()))?;
            // Throws if the range is outside the array.
            bytes.get_region(env, offset.saturating_add(done), values)?;
            staged.filled(now);
            done += now as jint;
        }
        Ok(true)
    })
    .resolve::<TypedErrors>()
}

/// `Native.stageEnd`: the file's next bytes are left out.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_stageEnd<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        if let Some(shared) = STAGED.get(handle as u64) {
            if let Some(staged) = lock(&shared).as_mut() {
                staged.end();
            }
        }
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.dropStaged`: the file is not written to its end.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_dropStaged<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        drop(take(handle));
        Ok(())
    })
    .resolve::<TypedErrors>();
}
