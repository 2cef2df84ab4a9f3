/* SPDX-License-Identifier: Apache-2.0 */
/* The context: the communicator, cores, GPUs and log of one OS process from trama_start to trama_stop. */
#ifndef TRAMA_CONTEXT_H
#define TRAMA_CONTEXT_H

#include "trama_base.h"

TRAMA_API_BEGIN

typedef struct trama_context trama_context; /* at most one is live in a process */

/* Severity of a message to a log function. */
typedef enum trama_log_level {
    TRAMA_LOG_ERROR,   /* an action failed */
    TRAMA_LOG_WARNING, /* an action succeeded, but slower or less completely than it could */
    TRAMA_LOG_INFO     /* information */
} trama_log_level;

/* The kinds of places on which the processes of a mesh run. */
typedef enum trama_device {
    TRAMA_DEVICE_DEFAULT, /* the variable TRAMA_DEVICE (cpu, gpu or auto), else TRAMA_CPU */
    TRAMA_CPU,            /* the cores of each rank: one place for each NUMA domain */
    TRAMA_GPU,            /* the rank's GPUs, one place each; ops without a GPU kernel run on the rank's cores */
    TRAMA_AUTO            /* both: the places of cores first, then the GPUs; only cores where there is no GPU */
} trama_device;

/* Options of a context. A zeroed struct takes every default. An environment variable that a comment names replaces a
 * value of 0. All ranks give the same values, except for workers, watchdog, device, gpu_memory, gpu_steps,
 * keep_blas_kernels, keep_affinity, log and fatal. */
typedef struct trama_config {
    size_t size; /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */

    /* Address of an MPI_Comm, which trama_start duplicates. NULL: MPI_COMM_WORLD where MPI is initialised or a launcher
     * started the program, else this process alone. */
    const void *communicator;

    /* CPU workers of this rank, TRAMA_WORKERS. 0: the cores that the rank may use (binding, control groups), shared
     * fairly with the other ranks of the node. With several ranks, a rank of 8 cores or more keeps one core for
     * messages. */
    int workers;

    /* Most runs in flight of an executable, 1 to 64, TRAMA_MAX_IN_FLIGHT. Each run in flight has buffers for its
     * inputs. 0: 2; or up to 8 where the inputs of a run take 64 KiB or less and the runs in flight have at most 256
     * tasks and messages in all. */
    int max_in_flight;

    /* Most tiles of one op, TRAMA_MAX_TILES; 0: the workers of a place. A fixed number gives equal bits on machines
     * with different numbers of workers. */
    int max_tiles;

    int64_t grain_flops; /* least work worth one task; 0: 2e6 flop */
    /* Least bytes of a result worth one task; 0: 64 KiB. An operand of 16 times these counts, too, with half its
     * bytes. */
    int64_t grain_bytes;

    /* Most bytes of staging buffers that one change of layout has on a place, TRAMA_STAGING_BYTES; 0: 64 MiB. Each term
     * of a sum may take 128 bytes more. Larger messages are cut, or are sent from and received in the tensors. */
    int64_t staging_bytes;

    /* Extent taken for TRAMA_ANY when layouts are completed; 0: 1024. It is halved until every tensor has at most 2^60
     * bytes. */
    int64_t nominal;

    int watchdog; /* seconds without progress after which a wait reports, TRAMA_WATCHDOG; 0: 30 */

    /* TRAMA_DEVICE. A rank has the GPUs that CUDA_VISIBLE_DEVICES leaves it. Ranks of a node that see the same GPUs
     * divide them; where there are fewer GPUs than ranks, ranks share one. */
    trama_device device;

    /* Most bytes that Trama's tensors take of each GPU, TRAMA_GPU_MEMORY. 0: the memory free at the start, less 1/8 of
     * it or 1 GiB, whichever is less, divided by the ranks that share the GPU. Tensors that do not fit at a time stay
     * in the host's memory. */
    int64_t gpu_memory;

    /* Folder for the trace of all ranks, TRAMA_TRACE; `trama trace FOLDER` reads it. NULL: no trace, at no cost. All
     * ranks give a folder or none does, and the communicator has all ranks of MPI_COMM_WORLD. trama_start makes the
     * folder and removes the prof_file_* and about_* of an earlier trace in it. Later contexts of a process write to
     * FOLDER.2, and so on. An adopted StarPU is not traced. A trace takes 2 KB a task, and 15 MB a second on a rank
     * that waits for messages. It is complete after trama_stop. After exit() it has all events recorded before; after a
     * signal it has the events written to disk before (every STARPU_TRACE_BUFFER_SIZE MB, 64). */
    const char *trace;

    /* Compare every collective call over the ranks, TRAMA_CHECK_CALLS=1: for debugging. Where two ranks make different
     * calls, or pass different values or shapes, all ranks get E_ORDER with both calls and their lines, and again from
     * every later collective call. Programs are compared always (trama_compile). */
    bool check_calls;

    /* Fill the ranks in blocks with processes 0, 1, ... of a mesh, as on meshes with weights, TRAMA_MAP_BY_ORDER=1;
     * else processes are placed by traffic and distance. */
    bool map_by_order;

    bool verify;    /* make and verify the plans of all ranks on each before a target first runs, TRAMA_VERIFY=1 */
    bool no_fusion; /* one task an op, and no operand read in place: for comparisons */
    bool keep_blas_kernels; /* do not re-select the kernels of a BLAS that does not know this CPU */
    bool tf32;              /* products of f32 on GPUs round their operands to 10 bits of mantissa, TRAMA_TF32=1 */

    /* Let NCCL sum terms on several GPUs, in an order that NCCL chooses, TRAMA_SUM=nccl: fewer bytes move. All replicas
     * then have equal bits, but these differ from the bits of places without NCCL, of another number of GPUs of a rank
     * and of other versions of NCCL. Else (TRAMA_SUM=fixed) sums are made in the order of processes, as everywhere. */
    bool nccl_sums;

    void (*log)(void *data, trama_log_level level, const char *text); /* NULL: warnings and errors to stderr */
    void *log_data;                                                   /* first argument of log */

    /* Receives the reason before Trama ends the process by abort(), on any thread; runtime/README.md lists the cases.
     * It may end the process, for example by MPI_Abort. NULL: log gets the reason as an error. */
    void (*fatal)(void *data, const char *text);
    void *fatal_data; /* first argument of fatal */

    /* Buffers of a plan that are not used at the same time share memory where those of a place have this many bytes,
     * TRAMA_ARENA_BYTES; 0: 64 MiB. Smaller plans give each buffer memory of its own, so that no task waits for one,
     * and so have buffers below a 1,024th of that. */
    int64_t arena_bytes;

    /* Most steps of a plan that one task on a GPU takes, TRAMA_GPU_STEPS; 0: 256. With 1 each op has a task, as traces
     * may want; a task then starts some 10 us after the one that it waits for. */
    int gpu_steps;

    /* Between ranks of one node, elements that a target computes and another rank needs in a buffer of their own, such
     * as the terms of a sum, are not copied where they have at least this many bytes, TRAMA_LOAN_BYTES; 0: 64 KiB:
     * tasks read them in the memory of the rank that computed them. Above 2^30 all are copied. */
    int64_t loan_bytes;

    /* Leave the affinity of the thread that calls trama_start as it is, TRAMA_KEEP_AFFINITY=1. Else, where Trama starts
     * MPI and ranks divide the cores of their node, that thread is bound to the cores of its rank until trama_stop:
     * elsewhere it takes time from another rank's workers. Threads that it creates meanwhile inherit the binding. */
    bool keep_affinity;
} trama_config;

/* Starts Trama. Collective over the communicator. config may be NULL. One context is live per OS process at a time;
 * start and stop may be repeated. A program that initialises MPI and has several ranks asks MPI for
 * MPI_THREAD_MULTIPLE; where Trama initialises MPI, it finalises MPI at exit. Trama starts StarPU, or adopts the StarPU
 * that the program has started. Errors: E_ORDER where a context is live, E_ARGUMENT, E_SYSTEM, the same status on all
 * ranks; *context is then NULL. */
trama_status trama_start(const trama_config *config, trama_context **context);

/* trama_start with a communicator of Fortran, an MPI_Fint, in place of config->communicator. E_ARGUMENT where MPI is
 * not initialised, E_UNSUPPORTED without MPI. */
trama_status trama_start_fortran(const trama_config *config, int communicator, trama_context **context);

/* Ends Trama. Collective. Waits for all work, frees the context and nulls *context; NULL is allowed. Executables must
 * have been destroyed and wrapped tensors released; otherwise it does nothing and answers E_ORDER. It ends everything
 * and answers E_ORDER as well where the ranks made different calls (trama_config.check_calls) or compiled different
 * programs.
 *
 * A program may also end without trama_stop: by return from main, by exit, on an error of one rank, or by unloading the
 * library (dlclose). Trama then waits for the tasks of this rank. If all ranks end within 5 s (or config.watchdog) of
 * each other, it ends StarPU, and MPI where it started MPI; else the rank ends alone and the launcher ends the job. The
 * exit status stays the program's.
 *
 * A child of fork has no context: every call that takes a context or an executable answers E_ORDER there. */
trama_status trama_stop(trama_context **context);

int trama_context_rank(const trama_context *context);  /* rank of this process in the communicator; -1 for NULL */
int trama_context_ranks(const trama_context *context); /* number of ranks in the communicator; 0 for NULL */

/* A text of several lines, which trama_text_free frees: versions, topology, ranks, the processors that the rank may
 * use, its workers and their cores, how messages are driven and why, places. NULL for NULL. */
char *trama_context_describe(const trama_context *context);

TRAMA_API_END
#endif
