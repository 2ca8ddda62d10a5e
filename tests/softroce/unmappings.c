/* Whether the kernel unmaps what a process with several threads drops.
 * usage: unmappings ROUNDS; exit code 1: pages that were dropped could still be read.
 *
 * Each round writes to every page of a mapping, drops all of them by one madvise(MADV_DONTNEED) while
 * other threads run, and reads them: a page that was dropped is zero.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, THREADS = 3 };
/* Several times what one gather of the kernel holds (some 40 MB), and no multiple of a page table. */
static const size_t BYTES = ((size_t)150 << 20) + 37 * PAGE;
static atomic_bool ended;

/* Faults on pages of its own, so that the kernel has a reason to run it. */
static void *disturb(void *unused)
{
	char *own = mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)unused;
	if (own == MAP_FAILED)
		return 0;
	while (!atomic_load(&ended)) {
		for (int page = 0; page < 64; page++)
			((volatile char *)own)[page * PAGE] = 1;
		madvise(own, 64 * PAGE, MADV_DONTNEED);
	}
	munmap(own, 64 * PAGE);
	return 0;
}

static long stale_pages(void)
{
	volatile char *bytes = mmap(0, BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long stale = 0;

	if (bytes == MAP_FAILED)
		return -1;
	for (size_t at = 0; at < BYTES; at += PAGE)
		bytes[at] = 1;
	if (madvise((void *)bytes, BYTES, MADV_DONTNEED))
		return -1;
	for (size_t at = 0; at < BYTES; at += PAGE)
		stale += bytes[at] != 0;
	munmap((void *)bytes, BYTES);
	return stale;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS];
	int rounds = count == 2 ? atoi(words[1]) : 0, bad = 0;

	if (rounds < 1) {
		fprintf(stderr, "usage: unmappings ROUNDS\n");
		return 2;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], 0, disturb, 0))
			return 2;
	for (int round = 0; round < rounds; round++) {
		long stale = stale_pages();
		if (stale < 0) {
			perror("unmappings");
			return 2;
		}
		if (stale) {
			printf("round %d: %ld pages could still be read\n", round, stale);
			bad = 1;
		}
	}
	atomic_store(&ended, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	printf("%d rounds\n", rounds);
	return bad;
}
