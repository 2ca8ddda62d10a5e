//! libibverbs, found at run time and loaded once for the life of the process.

use super::error::VerbsError;
use ibverbs_sys::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_mr,
    ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::sync::OnceLock;

/// The soname that every libibverbs since 2006 has.
const LIBRARY: &CStr = c"libibverbs.so.1";

extern "C" {
    /// See shim/verbs.c.
    fn faro_verbs_load(
        library: *const c_char,
        symbols: *mut *mut c_void,
        count: usize,
    ) -> *const c_char;
}

/// Functions of libibverbs, as `man ibv_*` describes them. Only pointers, in the shim's order.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Symbols {
    pub(super) get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
    pub(super) free_device_list: unsafe extern "C" fn(*mut *mut ibv_device),
    pub(super) get_device_name: unsafe extern "C" fn(*mut ibv_device) -> *const c_char,
    pub(super) open_device: unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
    pub(super) close_device: unsafe extern "C" fn(*mut ibv_context) -> c_int,
    pub(super) query_device: unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
    pub(super) query_port: unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    pub(super) alloc_pd: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
    pub(super) dealloc_pd: unsafe extern "C" fn(*mut ibv_pd) -> c_int,
    pub(super) reg_mr: unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
    pub(super) dereg_mr: unsafe extern "C" fn(*mut ibv_mr) -> c_int,
    pub(super) create_comp_channel: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
    pub(super) destroy_comp_channel: unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
    pub(super) create_cq: unsafe extern "C" fn(
        *mut ibv_context,
        c_int,
        *mut c_void,
        *mut ibv_comp_channel,
        c_int,
    ) -> *mut ibv_cq,
    pub(super) destroy_cq: unsafe extern "C" fn(*mut ibv_cq) -> c_int,
    pub(super) get_cq_event:
        unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
    pub(super) ack_cq_events: unsafe extern "C" fn(*mut ibv_cq, c_uint),
    pub(super) create_qp: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
    pub(super) modify_qp: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
    pub(super) destroy_qp: unsafe extern "C" fn(*mut ibv_qp) -> c_int,
    pub(super) get_async_event:
        unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
    pub(super) ack_async_event: unsafe extern "C" fn(*mut ibv_async_event),
    event_type_str: unsafe extern "C" fn(c_uint) -> *const c_char,
    wc_status_str: unsafe extern "C" fn(c_uint) -> *const c_char,
}

/// Pointers in [`Symbols`].
const COUNT: usize = size_of::<Symbols>() / size_of::<*mut c_void>();

impl Symbols {
    /// The name of an asynchronous event.
    pub(super) fn event_name(&self, event: c_uint) -> String {
        // SAFETY: takes any number, and returns a string that lives as long as the library, or null.
        text(unsafe { (self.event_type_str)(event) })
    }

    /// The name of a completion's status.
    pub(super) fn status_name(&self, status: c_uint) -> String {
        // SAFETY: as above.
        text(unsafe { (self.wc_status_str)(status) })
    }
}

/// A C string's text; empty for null.
pub(super) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, and by the callers' contracts a string that ends in NUL and lives long enough.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

/// The library's functions; loads it at the first call of the process.
///
/// # Errors
/// `NoLibrary` with the loader's words.
pub(super) fn library() -> Result<&'static Symbols, VerbsError> {
    static LOADED: OnceLock<Result<Symbols, String>> = OnceLock::new();
    LOADED
        .get_or_init(|| load(LIBRARY))
        .as_ref()
        .map_err(|detail| VerbsError::NoLibrary {
            detail: detail.clone(),
        })
}

fn load(library: &CStr) -> Result<Symbols, String> {
    let mut pointers = [std::ptr::null_mut(); COUNT];
    // SAFETY: the name ends in NUL; the table has room for `COUNT` pointers, which is what is said.
    let trouble = unsafe { faro_verbs_load(library.as_ptr(), pointers.as_mut_ptr(), COUNT) };
    if !trouble.is_null() {
        return Err(text(trouble));
    }
    // SAFETY: `Symbols` is `repr(C)` and consists of `COUNT` function pointers; the shim filled
    // in all of them, none null, in this order, by names and versions whose signatures these are.
    Ok(unsafe { std::mem::transmute::<[*mut c_void; COUNT], Symbols>(pointers) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_host_without_the_library_is_told_what_to_install() {
        let detail = load(c"libibverbs.so.none").err().unwrap();
        let text = VerbsError::NoLibrary { detail }.to_string();
        assert!(
            text.contains("libibverbs.so.none") && text.contains("install libibverbs1"),
            "{text}"
        );
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let detail = load(c"libc.so.6").err().unwrap();
        assert!(detail.contains("ibv_get_device_list"), "{detail}");
    }

    /// `make check` looks at the library that is shipped; this at what tests are linked from.
    #[test]
    fn no_program_depends_on_the_library() {
        let program = std::env::current_exe().unwrap();
        let output = Command::new("readelf")
            .arg("-d")
            .arg(program)
            .output()
            .unwrap();
        let needed = String::from_utf8(output.stdout).unwrap();
        assert!(needed.contains("libc.so.6"), "{needed}");
        assert!(!needed.contains("verbs"), "{needed}");
    }
}
