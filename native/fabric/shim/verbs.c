/* Finds libibverbs at run time, so that the library that links this one runs on hosts without it.
 *
 * Symbols are asked for with their version: the plain name of some means a compatibility function
 * of another signature (IBVERBS_1.0), and what headers call ibv_query_port or ibv_reg_mr are
 * macros over several. Those of IBVERBS_1.1 have been the same since 2006. What headers define
 * inline (post, poll, arm) goes through the context's own table of operations and needs no symbol.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

struct wanted {
    const char *name;
    const char *version;
};

/* In the order of `Symbols` in library.rs. */
static const struct wanted WANTED[] = {
    {"ibv_get_device_list", "IBVERBS_1.1"},
    {"ibv_free_device_list", "IBVERBS_1.1"},
    {"ibv_get_device_name", "IBVERBS_1.1"},
    {"ibv_open_device", "IBVERBS_1.1"},
    {"ibv_close_device", "IBVERBS_1.1"},
    {"ibv_query_device", "IBVERBS_1.1"},
    {"ibv_query_port", "IBVERBS_1.1"},
    {"ibv_alloc_pd", "IBVERBS_1.1"},
    {"ibv_dealloc_pd", "IBVERBS_1.1"},
    {"ibv_reg_mr", "IBVERBS_1.1"},
    {"ibv_dereg_mr", "IBVERBS_1.1"},
    {"ibv_create_comp_channel", "IBVERBS_1.0"},
    {"ibv_destroy_comp_channel", "IBVERBS_1.0"},
    {"ibv_create_cq", "IBVERBS_1.1"},
    {"ibv_destroy_cq", "IBVERBS_1.1"},
    {"ibv_get_cq_event", "IBVERBS_1.1"},
    {"ibv_ack_cq_events", "IBVERBS_1.1"},
    {"ibv_create_qp", "IBVERBS_1.1"},
    {"ibv_modify_qp", "IBVERBS_1.1"},
    {"ibv_destroy_qp", "IBVERBS_1.1"},
    {"ibv_get_async_event", "IBVERBS_1.1"},
    {"ibv_ack_async_event", "IBVERBS_1.1"},
    {"ibv_event_type_str", "IBVERBS_1.1"},
    {"ibv_wc_status_str", "IBVERBS_1.1"},
};

enum { COUNT = sizeof WANTED / sizeof WANTED[0] };

/* Fills `symbols` (`count` of them). Returns NULL, or what went wrong, valid until the next call
 * of this thread into the loader. The library stays loaded for ever: devices' threads and handlers
 * that it started would not survive its end. */
const char *faro_verbs_load(const char *library, void **symbols, size_t count) {
    if (count != COUNT) {
        return "the tables of symbols differ";
    }
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return dlerror();
    }
    for (size_t i = 0; i < COUNT; i++) {
        symbols[i] = dlvsym(handle, WANTED[i].name, WANTED[i].version);
        if (symbols[i] == NULL) {
            const char *why = dlerror();
            return why != NULL ? why : WANTED[i].name;
        }
    }
    return NULL;
}
