/* SPDX-License-Identifier: Apache-2.0 */
/* The context: what one OS process brings to Trama (communicator, cores, log) from trama_start to trama_stop. */
#ifndef TRAMA_CONTEXT_H
#define TRAMA_CONTEXT_H

#include "trama_base.h"

TRAMA_API_BEGIN

typedef struct trama_context trama_context; /* one a process is live at a time */

/* How bad it is what a log function is told. */
typedef enum trama_log_level {
    TRAMA_LOG_ERROR,   /* what was asked for was not done */
    TRAMA_LOG_WARNING, /* it was, but not as well as it could be */
    TRAMA_LOG_INFO     /* good to know */
} trama_log_level;

/* On what the processes of a mesh run. */
typedef enum trama_device {
    TRAMA_DEVICE_DEFAULT, /* what TRAMA_DEVICE says (cpu, gpu or auto), else TRAMA_CPU */
    TRAMA_CPU,            /* the cores of each rank: one place for each NUMA domain */
    TRAMA_GPU,            /* the rank's GPUs, one place each; what has no kernel for GPUs its cores do */
    TRAMA_AUTO            /* both: the places of cores first, then the GPUs; only cores where there is no GPU */
} trama_device;

/* Options of a context. A zeroed one takes every default; where a variable of the environment is named, it stands in
 * for a value of 0. All ranks give the same values, but for log,
 * device and gpu_memory. */
typedef struct trama_config {
    size_t size;              /* bytes of this struct, or 0: trama_base.h, "Structs that may grow" */
    const void *communicator; /* address of an MPI_Comm, duplicated by trama_start; NULL: MPI_COMM_WORLD where MPI is
                                 initialised or a launcher started the program, else this process alone */
    int workers;              /* CPU workers of this rank, TRAMA_WORKERS; 0: the cores it may use (binding, control
                                 groups), shared fairly with the other ranks of the node; one core is kept for messages
                                 where a rank of several has 8 or more */
    int max_in_flight;               /* steps in flight at most, up to 64, TRAMA_MAX_IN_FLIGHT; 0: 2, or up to 8 where the inputs of a
                                 step take 64 KiB or less, as long as all are at most 256 tasks and messages. Each
                                 step in flight has buffers for its inputs */
    int max_tiles;                 /* into how many tiles an op is cut at most, TRAMA_MAX_TILES; 0: the workers of a place. Fix it
                                 for equal bits on unlike machines */
    int64_t grain_flops;      /* least work worth one task; 0: 2e6 flop */
    int64_t grain_bytes;      /* 0: 64 KiB */
    int64_t staging_bytes;   /* bytes of message buffers that one change of layout has on a place at most (but for 128
                                 bytes of each term of a sum), TRAMA_STAGING_BYTES; 0: 64 MiB. Larger messages are
                                 cut, or lie in the tensors */
    int64_t nominal;          /* extent taken for TRAMA_ANY when layouts are completed; 0: 1024. Halved until
                                 every tensor has at most 2^60 bytes */
    int watchdog;             /* seconds without progress until a wait reports, TRAMA_WATCHDOG; 0: 30 */
    trama_device device;  /* TRAMA_DEVICE. The GPUs of a rank are those that CUDA_VISIBLE_DEVICES leaves it; ranks of a
                             node that see the same ones divide them, or share them where there are fewer */
    int64_t gpu_memory;   /* bytes that Trama's tensors take of each GPU at most, TRAMA_GPU_MEMORY; 0: what is free at the
                             start but for 1/8 or 1 GiB, whichever is less, divided by the ranks that share it. What
                             does not fit at a time stays in the host's memory */
    const char *trace; /* a folder for the trace of all ranks, TRAMA_TRACE, which `trama trace FOLDER` reads; made where
                          it is not there, and the prof_file_* and about_* of an earlier trace go. NULL: no trace, at no
                          cost. All ranks give one or none, and the communicator has all ranks of MPI_COMM_WORLD; a
                          StarPU that the program runs is not traced from here. Later contexts of a process write to
                          FOLDER.2, and so on. Takes 2 KB a task, and 15 MB a second on a rank that waits for messages.
                          A trace is whole after trama_stop; exit() keeps what was recorded, a signal what had been
                          written to disk by then (every STARPU_TRACE_BUFFER_SIZE MB, 64) */
    bool check_calls;  /* every collective call is compared over the ranks, TRAMA_CHECK_CALLS=1: for debugging. Where two
                          ranks make different calls, or on other values or shapes, all ranks get E_ORDER with a message
                          that has both calls and their lines, and from every later collective call again: see
                          trama_compile for the programs, which are always compared */
    bool
        map_by_order; /* process i of n fills the ranks in blocks, as on meshes with weights, TRAMA_MAP_BY_ORDER=1; else
                         by traffic and distance */
    bool verify; /* the plans of all ranks are made and verified on each before a target first runs, TRAMA_VERIFY=1 */
    bool no_fusion;         /* one task an op: for comparisons */
    bool keep_blas_kernels; /* do not re-select the kernels of a BLAS that does not know this CPU */
    bool tf32;              /* products of f32 on GPUs round their operands to 10 bits of mantissa, TRAMA_TF32=1 */
    bool nccl_sums; /* terms on several GPUs are summed by NCCL, TRAMA_SUM=nccl, in an order that it chooses: less moves.
                       All replicas then have equal bits, but no longer the bits of places without NCCL, of other
                       numbers of GPUs to a rank or other versions of NCCL. Else (TRAMA_SUM=fixed) sums are made in the
                       order of processes, as everywhere */
    void (*log)(void *data, trama_log_level level, const char *text); /* NULL: warnings and errors to stderr */
    void *log_data; /* what log is given as data */
    /* Told why Trama ends the process by abort(), on any thread; runtime/README.md lists the cases. It may end the process
     * itself, as by MPI_Abort. NULL: log is told, as an error. */
    void (*fatal)(void *data, const char *text);
    void *fatal_data; /* what fatal is given as data */
} trama_config;

/* Starts Trama. Collective over the communicator. config may be NULL. One live context per OS process; start and stop
 * as often as one likes. Several ranks need MPI_THREAD_MULTIPLE where the program initialises MPI; where Trama does, it
 * finalises it at exit. StarPU is started, or adopted where the program has. Errors: E_ORDER where one is live already,
 * E_ARGUMENT, E_SYSTEM, with an equal status on all ranks; then *context is NULL. */
trama_status trama_start(const trama_config *config, trama_context **context);

/* trama_start with a communicator as Fortran has it, an MPI_Fint, in place of the configuration's. E_ARGUMENT where MPI
 * is not initialised, E_UNSUPPORTED without MPI. */
trama_status trama_start_fortran(const trama_config *config, int communicator, trama_context **context);

/* Ends it. Collective. Waits for all work, frees what the context holds, nulls *context; NULL is allowed. Executables
 * must have been destroyed and wrapped tensors released (E_ORDER otherwise, and nothing is done). Where the ranks made
 * different calls (trama_config.check_calls), or compiled different programs, it does all that and answers E_ORDER, too.
 * A program may also end without it: by return from main, by exit, on an error of one rank, or by unloading the library
 * (dlclose). Trama then waits for the tasks of this rank, and ends StarPU, and MPI where it started that, if all ranks
 * end within 5 s (or config.watchdog) of each other; else the rank ends alone and the launcher ends the job. The exit
 * status stays the program's. A child of fork has no context: there every call that takes one, or an executable,
 * answers E_ORDER. */
trama_status trama_stop(trama_context **context);

int trama_context_rank(const trama_context *context);  /* of this process in the communicator; -1 for NULL */
int trama_context_ranks(const trama_context *context); /* ranks in the communicator; 0 for NULL */

/* Versions, topology, ranks, which processors the rank may use, its workers and where they are bound, how messages are
 * driven and why, places: a text of several lines, which trama_text_free frees. NULL for NULL. */
char *trama_context_describe(const trama_context *context);

TRAMA_API_END
#endif
