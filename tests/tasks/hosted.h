/* SPDX-License-Identifier: Apache-2.0 */
/* A host's view of itself, taken before and after: signals, threads, cores, floating point, environment, files.
 * And a host: a pool of threads with cores of their own choice. */
#ifndef HOSTED_H
#define HOSTED_H

#define _GNU_SOURCE /* affinities */
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "network.h"

extern char **environ;
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int n) __attribute__((weak));

/* ---- A host's threads ---- */

enum { POOL = 3 };

typedef struct host {
    pthread_t thread[POOL];
    pid_t tid[POOL + 1]; /* the main thread's last */
    pthread_barrier_t barrier;
    atomic_int n;
} host;

static inline int only_core(int n, cpu_set_t *set)
{
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && n-- == 0)
            CPU_SET(cpu, set);
    return CPU_COUNT(set);
}

static inline void *host_thread(void *arg)
{
    host *h = arg;
    cpu_set_t one;
    int me = atomic_fetch_add(&h->n, 1);
    h->tid[me] = (pid_t)syscall(SYS_gettid);
    if (me > 0 && only_core(me - 1, &one))
        sched_setaffinity(0, sizeof one, &one);
    pthread_barrier_wait(&h->barrier);
    pthread_barrier_wait(&h->barrier);
    return NULL;
}

/* The first thread may go anywhere, the others are bound to a core each, as a runtime of OpenMP binds its own. */
static inline void host_start(host *h)
{
    atomic_store(&h->n, 0);
    pthread_barrier_init(&h->barrier, NULL, POOL + 1);
    for (int i = 0; i < POOL; i++)
        demand(!pthread_create(&h->thread[i], NULL, host_thread, h), "a thread of the host");
    h->tid[POOL] = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&h->barrier);
}

static inline void host_end(host *h)
{
    pthread_barrier_wait(&h->barrier);
    for (int i = 0; i < POOL; i++)
        pthread_join(h->thread[i], NULL);
    pthread_barrier_destroy(&h->barrier);
}

/* ---- Names in order, such as the variables of an environment ---- */

typedef struct names {
    int n;
    char *at[4096];
} names;

static inline int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void names_add(names *list, const char *name)
{
    demand(list->n < 4096, "too many names");
    list->at[list->n++] = strdup(name);
}

static inline void names_free(names *list)
{
    while (list->n > 0)
        free(list->at[--list->n]);
}

static inline void names_demand_equal(names *before, names *after, const char *what)
{
    qsort(before->at, (size_t)before->n, sizeof(char *), compare_names);
    qsort(after->at, (size_t)after->n, sizeof(char *), compare_names);
    for (int b = 0, a = 0; b < before->n || a < after->n;) {
        int order = b == before->n ? 1 : a == after->n ? -1 : strcmp(before->at[b], after->at[a]);
        demand(order >= 0, "%s is gone: %s", what, before->at[b]);
        demand(order <= 0, "%s has come: %s", what, after->at[a]);
        b++, a++;
    }
}

static inline names environment_now(void)
{
    names list = {0};
    for (char **e = environ; *e; e++)
        names_add(&list, *e);
    return list;
}

static inline names entries_of(const char *folder, bool targets)
{
    names list = {0};
    DIR *d = opendir(folder);
    demand(d, "cannot read %s", folder);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600], target[600] = "", line[1300];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        ssize_t length = targets ? readlink(path, target, sizeof target - 1) : 0;
        target[length > 0 ? length : 0] = 0;
        snprintf(line, sizeof line, "%s %s", e->d_name, target);
        if (*e->d_name != '.' && atoi(e->d_name) != dirfd(d))
            names_add(&list, line);
    }
    closedir(d);
    return list;
}

/* ---- A host's view of itself ---- */

typedef struct snapshot {
    struct sigaction action[NSIG];
    sigset_t blocked;
    cpu_set_t cores[POOL + 1];
    unsigned floating[3]; /* rounding, exceptions that trap, x86's other bits */
    mode_t mask;
    char folder[4096], locale[256];
    int blas;
    names environment, files, threads;
} snapshot;

static inline void floating_now(unsigned *mode)
{
    mode[0] = (unsigned)fegetround();
    mode[1] = mode[2] = 0;
#if defined(__x86_64__)
    unsigned short control;
    __asm__("fnstcw %0" : "=m"(control));
    mode[1] = __builtin_ia32_stmxcsr() & ~0x3fu; /* without what has been raised */
    mode[2] = control;
#endif
}

static inline void snapshot_take(snapshot *s, const host *h)
{
    memset(s, 0, sizeof *s);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &s->action[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    for (int i = 0; i <= POOL; i++)
        demand(!sched_getaffinity(h->tid[i], sizeof s->cores[i], &s->cores[i]), "thread %d is gone", i);
    floating_now(s->floating);
    s->mask = umask(0);
    umask(s->mask);
    demand(getcwd(s->folder, sizeof s->folder), "getcwd");
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    s->blas = openblas_get_num_threads ? openblas_get_num_threads() : 0;
    s->environment = environment_now();
    s->files = entries_of("/proc/self/fd", true);
    s->threads = entries_of("/proc/self/task", false);
}

static inline void snapshot_free(snapshot *s)
{
    names_free(&s->environment);
    names_free(&s->files);
    names_free(&s->threads);
}

static const int sa_restorer = 0x04000000; /* the C library's own, on some machines */

/* These hold at any time. */
static inline void demand_undisturbed(const snapshot *a, const snapshot *b, const char *when)
{
    for (int i = 1; i < NSIG; i++)
        demand(a->action[i].sa_handler == b->action[i].sa_handler &&
                   !((a->action[i].sa_flags ^ b->action[i].sa_flags) & ~sa_restorer),
               "%s: signal %d has another handler", when, i);
    for (int i = 1; i < NSIG; i++)
        demand(sigismember(&a->blocked, i) == sigismember(&b->blocked, i), "%s: signal %d in the mask", when, i);
    for (int i = 0; i <= POOL; i++)
        demand(CPU_EQUAL(&a->cores[i], &b->cores[i]), "%s: the cores of thread %d: %d of them become %d", when, i,
               CPU_COUNT(&a->cores[i]), CPU_COUNT(&b->cores[i]));
    for (int i = 0; i < 3; i++)
        demand(a->floating[i] == b->floating[i], "%s: floating point mode %d: %x becomes %x", when, i, a->floating[i],
               b->floating[i]);
    demand(a->mask == b->mask, "%s: umask", when);
    demand(!strcmp(a->folder, b->folder), "%s: the folder is %s", when, b->folder);
    demand(!strcmp(a->locale, b->locale), "%s: the locale is %s", when, b->locale);
}

/* And after trama_stop: all. */
static inline void demand_equal(snapshot *a, snapshot *b)
{
    demand_undisturbed(a, b, "after trama_stop");
    demand(a->blas == b->blas, "%d threads of the BLAS become %d", a->blas, b->blas);
    names_demand_equal(&a->environment, &b->environment, "a variable of the environment");
    names_demand_equal(&a->files, &b->files, "a file descriptor");
    names_demand_equal(&a->threads, &b->threads, "a thread");
}

/* ---- A program, and what it computes, by its bits ---- */

/* Of the loss and all parameters. */
static inline uint64_t network_bits(network *net)
{
    uint64_t bits = 0;
    double loss = network_loss(net);
    memcpy(&bits, &loss, sizeof bits);
    for (int i = 0; i < 2 * net->n; i++) {
        unsigned char data[20 * 17 * 8];
        size_t many = (size_t)((i % 2 ? 1 : net->size[i / 2]) * net->size[i / 2 + 1]);
        must(trama_read(net->e, network_parameter(net, i), data, many * trama_dtype_size(net->dtype)));
        for (size_t k = 0; k < many * trama_dtype_size(net->dtype); k++)
            bits = (bits ^ data[k]) * UINT64_C(1099511628211);
    }
    return bits;
}

static inline void network_steps(network *net, int first, int last)
{
    for (int step = first; step < last; step++) {
        samples s = samples_new(net, 11, step);
        network_feed(net, &s);
        must(trama_run(net->e, net->train));
        samples_free(&s);
    }
}

/* After three steps of training. */
static inline uint64_t train_bits(const char *mesh)
{
    network net = network_new(mesh, TRAMA_F32, true, 3, small_sizes);
    net.e = compile(net.program);
    network_steps(&net, 0, 3);
    uint64_t bits = network_bits(&net);
    network_free(&net);
    return bits;
}

#endif
