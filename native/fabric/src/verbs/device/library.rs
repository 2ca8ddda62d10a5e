//! libibverbs, found at run time and loaded once for the life of the process.

use super::error::VerbsError;
use super::sys::{
    ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_mr,
    ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr,
};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// The soname that every libibverbs since 2006 has.
const LIBRARY: &CStr = c"libibverbs.so.1";

/// Registers memory under an address of the caller's, with rights that a device may not know.
pub(super) type RegisterAt =
    unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr;

/// Declares [`Symbols`] and `Symbols::find`, which looks each of them up.
macro_rules! symbols {
    ($($visible:vis $field:ident: $name:literal $version:literal $kind:ty,)*) => {
        /// Functions of libibverbs, as `man ibv_*` describes them.
        #[derive(Clone, Copy)]
        pub(super) struct Symbols {
            $($visible $field: $kind,)*
            /// `ibv_reg_mr_iova2`, which libraries before 2020 do not have.
            pub(super) register_at: Option<RegisterAt>,
        }

        impl Symbols {
            /// # Safety
            /// `library` was returned by `dlopen` and is never closed. Its symbols, where it has
            /// them in these versions, are functions of these signatures.
            unsafe fn find(library: NonNull<c_void>) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the library stays open, by the caller's word.
                        let found = unsafe { symbol(library, $name, $version) }?;
                        // SAFETY: a function of this signature, by the caller's word; both are
                        // pointers of one size, which `transmute` checks.
                        unsafe { std::mem::transmute::<NonNull<c_void>, $kind>(found) }
                    },)*
                    // SAFETY: the library stays open, by the caller's word.
                    register_at: unsafe {
                        symbol(library, c"ibv_reg_mr_iova2", c"IBVERBS_1.8")
                    }
                    .ok()
                    // SAFETY: as above, a function of this signature.
                    .map(|found| unsafe { std::mem::transmute::<NonNull<c_void>, RegisterAt>(found) }),
                })
            }
        }
    };
}

// The version is part of each: the plain name of some means a function of IBVERBS_1.0 with another
// signature, and what headers call ibv_query_port or ibv_reg_mr are macros over several. Functions
// of IBVERBS_1.1 have been the same since 2006. What headers define inline (post, poll, arm) is
// called through the context's own table of operations and needs no symbol.
symbols! {
    pub(super) get_device_list: c"ibv_get_device_list" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
    pub(super) free_device_list: c"ibv_free_device_list" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut *mut ibv_device),
    pub(super) get_device_name: c"ibv_get_device_name" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_device) -> *const c_char,
    pub(super) open_device: c"ibv_open_device" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
    pub(super) close_device: c"ibv_close_device" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_context) -> c_int,
    pub(super) query_device: c"ibv_query_device" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
    pub(super) query_port: c"ibv_query_port" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    pub(super) alloc_pd: c"ibv_alloc_pd" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
    pub(super) dealloc_pd: c"ibv_dealloc_pd" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_pd) -> c_int,
    pub(super) reg_mr: c"ibv_reg_mr" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
    pub(super) dereg_mr: c"ibv_dereg_mr" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_mr) -> c_int,
    pub(super) create_comp_channel: c"ibv_create_comp_channel" c"IBVERBS_1.0"
        unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
    pub(super) destroy_comp_channel: c"ibv_destroy_comp_channel" c"IBVERBS_1.0"
        unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
    pub(super) create_cq: c"ibv_create_cq" c"IBVERBS_1.1"
        unsafe extern "C" fn(
            *mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int,
        ) -> *mut ibv_cq,
    pub(super) destroy_cq: c"ibv_destroy_cq" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_cq) -> c_int,
    pub(super) get_cq_event: c"ibv_get_cq_event" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
    pub(super) ack_cq_events: c"ibv_ack_cq_events" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_cq, c_uint),
    pub(super) create_qp: c"ibv_create_qp" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
    pub(super) modify_qp: c"ibv_modify_qp" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
    pub(super) destroy_qp: c"ibv_destroy_qp" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_qp) -> c_int,
    pub(super) get_async_event: c"ibv_get_async_event" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
    pub(super) ack_async_event: c"ibv_ack_async_event" c"IBVERBS_1.1"
        unsafe extern "C" fn(*mut ibv_async_event),
    event_type_str: c"ibv_event_type_str" c"IBVERBS_1.1"
        unsafe extern "C" fn(c_uint) -> *const c_char,
    wc_status_str: c"ibv_wc_status_str" c"IBVERBS_1.1"
        unsafe extern "C" fn(c_uint) -> *const c_char,
}

impl Symbols {
    pub(super) fn event_name(&self, event: c_uint) -> String {
        // SAFETY: takes any number, and returns a string that lives as long as the library, or null.
        text(unsafe { (self.event_type_str)(event) })
    }

    pub(super) fn status_name(&self, status: c_uint) -> String {
        // SAFETY: as above.
        text(unsafe { (self.wc_status_str)(status) })
    }
}

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
    // SAFETY: the name ends in NUL. libibverbs' constructors need nothing of this program.
    let opened = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let opened = NonNull::new(opened).ok_or_else(|| loader_error(library))?;
    // It is never closed: threads and handlers that drivers started would not survive its end.
    // SAFETY: opened just now; a library of this soname has what `symbols!` lists.
    unsafe { Symbols::find(opened) }
}

/// # Safety
/// `library` was returned by `dlopen` and is open.
unsafe fn symbol(
    library: NonNull<c_void>,
    name: &CStr,
    version: &CStr,
) -> Result<NonNull<c_void>, String> {
    // SAFETY: the library is open, by the caller's word; both strings end in NUL.
    let found = unsafe { libc::dlvsym(library.as_ptr(), name.as_ptr(), version.as_ptr()) };
    NonNull::new(found).ok_or_else(|| loader_error(name))
}

/// Returns what the loader says of the last failure of this thread; `about` if it says nothing.
fn loader_error(about: &CStr) -> String {
    // SAFETY: returns null or a string that is valid until this thread's next call of the loader.
    let message = text(unsafe { libc::dlerror() });
    if message.is_empty() {
        return about.to_string_lossy().into_owned();
    }
    message
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

    /// `make check` checks the library that is shipped; this test checks what tests are linked
    /// with.
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
