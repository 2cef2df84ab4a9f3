/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the BLAS library: one thread, and kernels that fit this CPU. It calls functions of OpenBLAS only, all of
 * them optional.
 *
 * OpenBLAS picks its kernels by CPU model when it is loaded, and an older one takes a CPU it does not know for a
 * Prescott (SSE3, a third to a fifth of the speed). Then the kernels are selected again, by the features of the CPU.
 * Sgemm in Gflop/s on one core, n = 1024 / 64:
 *   EPYC of Zen 4 (AVX-512 in two halves): Haswell 107 / 96, Zen 107 / 78, SkylakeX 102 / 115, Cooperlake 101 / 107,
 *   Prescott 38 / 34;
 *   Xeon of Emerald Rapids: SkylakeX 192, Prescott 38.
 * So every CPU with full AVX-512 runs SkylakeX, with the same bits on all of them; on AMD up to family 0x19 no message
 * calls the kernels of AVX2 slow. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

extern char *openblas_get_corename(void) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak)); /* 0: serial, 1: threads, 2: OpenMP's */
extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void *blas_memory_alloc(int unused) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

/* Keeps the BLAS in programs that start Trama but link no kernel, so that they can tell its name. */
__attribute__((used)) static float (*const the_blas)(int, const float *, int, const float *, int) = cblas_sdot;

typedef enum { CPU_OTHER, CPU_AVX2, CPU_AVX512 } cpu_level;

static int host_threads; /* 0: the BLAS is the host's */
static int reserved;     /* buffers that the BLAS keeps, by blas_reserve */

/* For a BLAS whose threads are OpenMP's: each calling thread has its own number of them, which its loops use as
 * well. */
static int (*openmp_threads)(void);
static void (*openmp_set_threads)(int n);

static cpu_level kernel_level(void);
static cpu_level cpu_level_of(bool *halves);
static bool is_cooperlake(void);
static bool reselect(cpu_level level);
static void find_openmp(void);

static void take_threads(void)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads || openmp_set_threads || host_threads)
        return;
    host_threads = openblas_get_num_threads();
    openblas_set_num_threads(1);
}

const char *blas_start(bool allow_reselect)
{
    bool halves = false;
    const cpu_level level = cpu_level_of(&halves), needed = halves ? CPU_AVX2 : level;

    find_openmp();
    take_threads();
    if (!openblas_get_corename || getenv("OPENBLAS_CORETYPE"))
        return NULL;
    if (allow_reselect && (kernel_level() < level || is_cooperlake()) && reselect(level))
        return NULL;
    if (kernel_level() >= needed)
        return NULL;
    return level == CPU_AVX512 ? "OpenBLAS does not know this CPU and runs slow kernels: set OPENBLAS_CORETYPE=SkylakeX"
                               : "OpenBLAS does not know this CPU and runs slow kernels: set OPENBLAS_CORETYPE=Haswell";
}

void blas_stop(void)
{
    if (host_threads)
        openblas_set_num_threads(host_threads);
    host_threads = 0;
}

void blas_awake(bool awake)
{
    if (awake)
        take_threads();
    else
        blas_stop();
}

int blas_enter(void)
{
    if (!openmp_set_threads)
        return 0;
    const int before = openmp_threads();
    if (before != 1)
        openmp_set_threads(1);
    return before;
}

void blas_leave(int before)
{
    if (before > 1)
        openmp_set_threads(before);
}

static void find_openmp(void)
{
    if (!openblas_get_parallel || openblas_get_parallel() != 2 || openmp_set_threads)
        return;
    *(void **)&openmp_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (openmp_threads)
        *(void **)&openmp_set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
}

const char *blas_kernel_name(void)
{
    return openblas_get_corename ? openblas_get_corename() : "unknown";
}

/* OpenBLAS's BUFFER_SIZE where kernels are chosen at run time. */
size_t blas_bytes(int n)
{
#if defined(__x86_64__)
    return gotoblas_dynamic_init && n > reserved ? (size_t)(n - reserved) * ((size_t)128 << 20) : 0;
#else
    return 0;
#endif
}

/* OpenBLAS keeps buffers that were freed, for any thread. */
void blas_reserve(int n)
{
    if (!blas_memory_alloc || !blas_memory_free || n <= reserved)
        return;
    void **buffer = trama_alloc((size_t)n * sizeof *buffer);
    for (int i = 0; i < n; i++)
        buffer[i] = blas_memory_alloc(0);
    for (int i = 0; i < n; i++)
        blas_memory_free(buffer[i]);
    free(buffer);
    reserved = n;
}

/* The CPU that the kernels in use need. A name that is not listed is of another architecture or newer than this
 * list. */
static cpu_level kernel_level(void)
{
    static const char *const below[] = {
        "Katmai", "Coppermine", "Northwood",   "Prescott",  "Banias",     "Atom",         "Core2",
        "Penryn", "Dunnington", "Nehalem",     "Athlon",    "Opteron",    "Opteron_SSE3", "Barcelona",
        "Nano",   "Bobcat",     "Sandybridge", "Bulldozer", "Piledriver", "Steamroller",  "generic"};
    const char *name = openblas_get_corename();

    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        if (!strcmp(name, below[i]))
            return CPU_OTHER;
    return !strcmp(name, "Haswell") || !strcmp(name, "Zen") || !strcmp(name, "Excavator") ? CPU_AVX2 : CPU_AVX512;
}

/* SkylakeX with kernels for bf16; in f32 no faster, but with other bits. */
static bool is_cooperlake(void)
{
    return !strcmp(openblas_get_corename(), "Cooperlake");
}

/* blas_start has found the user's OPENBLAS_CORETYPE unset, so it is unset again. */
static bool reselect(cpu_level level)
{
    if (!gotoblas_dynamic_quit || !gotoblas_dynamic_init)
        return false;
    setenv("OPENBLAS_CORETYPE", level == CPU_AVX512 ? "SkylakeX" : "Haswell", 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv("OPENBLAS_CORETYPE");
    return kernel_level() >= level;
}

#if defined(__x86_64__) && defined(__GNUC__)

/* The registers that the operating system saves. */
static unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* AMD's Zen 1 to 4, which run 512 bits as two halves. */
static bool runs_halves(void)
{
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    const bool amd = c == signature_AMD_ecx;
    __cpuid(1, a, b, c, d);
    return amd && ((a >> 8) & 0xf) + ((a >> 20) & 0xff) <= 0x19;
}

static cpu_level cpu_level_of(bool *halves)
{
    const unsigned ymm = 0x6, zmm = 0xe6, avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d, features;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA))
        return CPU_OTHER;
    const unsigned saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &features, &c, &d) || !(features & bit_AVX2) || (saved & ymm) != ymm)
        return CPU_OTHER;
    *halves = runs_halves();
    return (features & avx512) == avx512 && (saved & zmm) == zmm ? CPU_AVX512 : CPU_AVX2;
}

#else

static cpu_level cpu_level_of(bool *halves)
{
    *halves = false;
    return CPU_OTHER;
}

#endif
