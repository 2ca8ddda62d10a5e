/* Binds to one address what would be bound to all of them. Spark's shuffle service binds its port to all addresses,
   so two NodeManagers of one machine could not both have it on the port that all applications expect. Preloaded. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) =
      (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
  const char *own = getenv("FARO_TEST_ADDRESS");
  if (own && length >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET) {
    struct sockaddr_in changed = *(const struct sockaddr_in *)address;
    if (changed.sin_addr.s_addr == htonl(INADDR_ANY) && inet_pton(AF_INET, own, &changed.sin_addr) == 1) {
      return next(socket, (const struct sockaddr *)&changed, length);
    }
  }
  return next(socket, address, length);
}
