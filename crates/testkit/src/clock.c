/* The wall clock of a process, moved by as many seconds as a file says. Loaded by LD_PRELOAD; see clock.rs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long *moved;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("TESTKIT_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) moved = map;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && moved && clock == CLOCK_REALTIME) now->tv_sec += *moved;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return (time_t)-1;
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
