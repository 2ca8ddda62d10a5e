// A NIC that this machine does not have: LD_PRELOAD=nic.so NIC=LIST program.
//
// Faro looks the functions of libibverbs up with dlvsym. This library answers some of them with
// wrappers, which give the answers that another device would give. Below them is a real device (rxe
// in the guest). LIST is of these, with commas; DEVICE is a name such as rxe1:
//
//   norc=DEVICE    it makes no reliable connected queue pair: EOPNOTSUPP, as AWS's EFA
//   noreads=DEVICE max_qp_rd_atom and max_qp_init_rd_atom are 0
//   nopairs=DEVICE ibv_create_qp: ENOMEM, as with too little locked memory or all queue pairs in use
//   qps=N          max_qp is N
//   pieces=N       ibv_create_qp with more than N places for a request to send: EINVAL, though max_sge is more
//   regs=N         no more than N regions of 1 MiB and more at a time: ibv_reg_mr ends with ENOMEM
//   noiova2       libibverbs has no ibv_reg_mr_iova2, as before 2020
//   strict        ibv_reg_mr_iova2: EINVAL, as where relaxed ordering is not known
//   slow=MS       each creation, change and end of a queue pair, and each registration, takes so long
//   hold=PATH      connecting a queue pair (RTR) waits while PATH is there, and makes PATH.held: a peer
//                  whose neighbour is looked for
//   ib             the ports are InfiniBand's, with the LID that is in the file /tmp/faro-lid, or the number of
//                  their host: 1 for rxe1. The last byte of a LID is the host that it leads to. Only packets to a
//                  LID of now, with all that the port wants (below), find their way. A change of addresses is told
//                  as one of the LID. What sysfs says of the port: tests/softroce/infiniband
//   grh            its packets need a global header (GRH), which they otherwise must not have
//   pkey=N, sl=N   the place of the P_Key in its table, and the service level, that it wants
//   retries        seven retries end, as a NIC's do; software RoCE takes them for endless
//   log            the calls go to stderr
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
// The headers' macros stand for several functions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova2
#undef ibv_query_port
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG(...) do { if (asked("log")) fprintf(stderr, "nic: " __VA_ARGS__); } while (0)

// The value behind NAME= in the list, or "" without a value; NULL: it is not in the list. The value
// ends at a comma.
static const char *asked(const char *name) {
  size_t length = strlen(name);
  for (const char *at = getenv("NIC"); at && *at; at = *at == ',' ? at + 1 : NULL) {
    size_t part = strcspn(at, ",");
    if (part >= length && !strncmp(at, name, length)) {
      if (part == length) return "";
      if (at[length] == '=') return at + length + 1;
    }
    at += part;
    if (!*at) break;
  }
  return NULL;
}

static int is_for(const char *name, struct ibv_context *context) {
  const char *device = asked(name);
  size_t length = device ? strcspn(device, ",") : 0;
  const char *own = context->device->name;
  return device && strlen(own) == length && !strncmp(own, device, length);
}

static struct ibv_qp *(*real_create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
static int (*real_modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
static struct ibv_mr *(*real_reg_mr)(struct ibv_pd *, void *, size_t, int);
static struct ibv_mr *(*real_reg_mr_iova2)(struct ibv_pd *, void *, size_t, uint64_t, unsigned);
static int (*real_dereg_mr)(struct ibv_mr *);
static int (*real_destroy_qp)(struct ibv_qp *);
static int (*real_query_device)(struct ibv_context *, struct ibv_device_attr *);
static int (*real_query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
static int (*real_get_async_event)(struct ibv_context *, struct ibv_async_event *);

// A command of the device's firmware.
static void slow(void) {
  const char *time = asked("slow");
  if (time) usleep(atol(time) * 1000);
}

static struct ibv_qp *create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *wanted) {
  LOG("create_qp on %s, type %d, %u to send\n", domain->context->device->name, wanted->qp_type,
      wanted->cap.max_send_wr);
  if (wanted->qp_type == IBV_QPT_RC && is_for("norc", domain->context)) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  if (is_for("nopairs", domain->context)) {
    errno = ENOMEM;
    return NULL;
  }
  const char *pieces = asked("pieces");
  if (pieces && wanted->cap.max_send_sge > (unsigned)atoi(pieces)) {
    errno = EINVAL;
    return NULL;
  }
  slow();
  return real_create_qp(domain, wanted);
}

// The LID of a device's port.
static uint16_t lid_of(struct ibv_context *context) {
  int lid = atoi(context->device->name + strlen("rxe"));
  FILE *file = fopen("/tmp/faro-lid", "r");
  if (file) {
    if (fscanf(file, "%d", &lid) != 1) lid = 0;
    fclose(file);
  }
  return lid;
}

// Whether a value is the one that the list has behind NAME=; any is where it has none.
static int is_wanted(const char *name, int value) {
  const char *wanted = asked(name);
  return !wanted || atoi(wanted) == value;
}

// Makes what an InfiniBand port understands one that the software device understands; 0: it does not
// understand it.
static int translated(struct ibv_qp *pair, struct ibv_qp_attr *wanted, int mask) {
  if (mask & IBV_QP_PKEY_INDEX) {
    // Faro has no pointer of its own there.
    pair->qp_context = (void *)(uintptr_t)wanted->pkey_index;
    wanted->pkey_index = 0;
  }
  if (mask & IBV_QP_AV) {
    struct ibv_ah_attr *to = &wanted->ah_attr;
    uint16_t own = lid_of(pair->context);
    if (!is_wanted("pkey", (uintptr_t)pair->qp_context) || !is_wanted("sl", to->sl)) return 0;
    if (to->is_global != (asked("grh") != NULL)) return 0;
    // Before a change of LIDs all had others.
    if (to->dlid >> 8 != own >> 8) return 0;
    // The hosts are 10.77.0.N, which GID 1 stands for.
    uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [14] = 0, [15] = to->dlid & 0xff};
    memcpy(to->grh.dgid.raw, gid, sizeof gid);
    to->grh.sgid_index = 1;
    to->grh.hop_limit = 64;
    to->is_global = 1;
    to->sl = 0;
  }
  return 1;
}

static int modify_qp(struct ibv_qp *pair, struct ibv_qp_attr *wanted, int mask) {
  const char *list = asked("hold");
  if (list && mask & IBV_QP_STATE && wanted->qp_state == IBV_QPS_RTR) {
    char path[256], held[264];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(list, ","), list);
    snprintf(held, sizeof held, "%s.held", path);
    while (!access(path, F_OK)) {
      close(open(held, O_CREAT | O_WRONLY, 0600));
      usleep(1000);
    }
  }
  if (mask & IBV_QP_PKEY_INDEX) LOG("INIT: P_Key %u\n", wanted->pkey_index);
  if (mask & IBV_QP_STATE && wanted->qp_state == IBV_QPS_RTR) {
    LOG("RTR: MTU %d, LID %u, global %u, SL %u\n", wanted->path_mtu, wanted->ah_attr.dlid,
        wanted->ah_attr.is_global, wanted->ah_attr.sl);
  }
  struct ibv_qp_attr copy = *wanted;
  if (asked("ib") && !translated(pair, &copy, mask)) return EINVAL;
  if (asked("retries") && mask & IBV_QP_RETRY_CNT && copy.retry_cnt == 7) copy.retry_cnt = 6;
  slow();
  return real_modify_qp(pair, &copy, mask);
}

static int destroy_qp(struct ibv_qp *pair) {
  slow();
  return real_destroy_qp(pair);
}

// Regions of 1 MiB and more that are there.
static atomic_long regions;

static int may_register(size_t bytes) {
  const char *most = asked("regs");
  slow();
  if (most && bytes >= 1 << 20 && atomic_fetch_add(&regions, 1) >= atol(most)) {
    atomic_fetch_sub(&regions, 1);
    errno = ENOMEM;
    return 0;
  }
  return 1;
}

static struct ibv_mr *reg_mr(struct ibv_pd *domain, void *start, size_t bytes, int access) {
  LOG("reg_mr of %zu bytes, access %#x\n", bytes, access);
  return may_register(bytes) ? real_reg_mr(domain, start, bytes, access) : NULL;
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *domain, void *start, size_t bytes, uint64_t from,
                                   unsigned access) {
  LOG("reg_mr_iova2 of %zu bytes, access %#x\n", bytes, access);
  if (asked("strict")) {
    errno = EINVAL;
    return NULL;
  }
  return may_register(bytes) ? real_reg_mr_iova2(domain, start, bytes, from, access) : NULL;
}

static int dereg_mr(struct ibv_mr *region) {
  int is_large = region->length >= 1 << 20;
  int code = real_dereg_mr(region);
  if (asked("regs") && is_large && !code) atomic_fetch_sub(&regions, 1);
  return code;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *found) {
  int code = real_query_device(context, found);
  LOG("query_device of %s: max_qp %d\n", context->device->name, found->max_qp);
  if (is_for("noreads", context)) found->max_qp_rd_atom = found->max_qp_init_rd_atom = 0;
  const char *pairs = asked("qps");
  if (pairs) found->max_qp = atoi(pairs);
  return code;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *found) {
  int code = real_query_port(context, number, found);
  if (asked("ib")) {
    found->link_layer = IBV_LINK_LAYER_INFINIBAND;
    found->lid = lid_of(context);
    // RoCE's packets always have one.
    found->flags &= ~IBV_QPF_GRH_REQUIRED;
    if (asked("grh")) found->flags |= IBV_QPF_GRH_REQUIRED;
  }
  return code;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
  int code = real_get_async_event(context, event);
  if (!code && asked("ib") && event->event_type == IBV_EVENT_GID_CHANGE) {
    event->event_type = IBV_EVENT_LID_CHANGE;
  }
  return code;
}

void *dlvsym(void *library, const char *name, const char *version) {
  static void *(*real)(void *, const char *, const char *);
  if (!real) real = (void *(*)(void *, const char *, const char *))dlsym(RTLD_NEXT, "dlvsym");
  void *found = real(library, name, version);
  if (found && !strcmp(name, "ibv_create_qp")) {
    real_create_qp = found;
    return create_qp;
  }
  if (found && !strcmp(name, "ibv_modify_qp")) {
    real_modify_qp = found;
    return modify_qp;
  }
  if (found && !strcmp(name, "ibv_reg_mr")) {
    real_reg_mr = found;
    return reg_mr;
  }
  if (found && !strcmp(name, "ibv_reg_mr_iova2")) {
    if (asked("noiova2")) return NULL;
    real_reg_mr_iova2 = found;
    return reg_mr_iova2;
  }
  if (found && !strcmp(name, "ibv_destroy_qp")) {
    real_destroy_qp = found;
    return destroy_qp;
  }
  if (found && !strcmp(name, "ibv_dereg_mr")) {
    real_dereg_mr = found;
    return dereg_mr;
  }
  if (found && !strcmp(name, "ibv_query_port")) {
    real_query_port = found;
    return query_port;
  }
  if (found && !strcmp(name, "ibv_get_async_event")) {
    real_get_async_event = found;
    return get_async_event;
  }
  if (found && !strcmp(name, "ibv_query_device")) {
    real_query_device = found;
    return query_device;
  }
  return found;
}
