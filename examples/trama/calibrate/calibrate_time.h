/* SPDX-License-Identifier: Apache-2.0 */
/* Times of small programs, for trama calibrate. */
#ifndef EXAMPLES_CALIBRATE_TIME_H
#define EXAMPLES_CALIBRATE_TIME_H

#include <stdio.h>

#include "calibrate_lines.h"
#include "trama.h"

enum { SAMPLES = 3, MOST_COPIES = 512 }; /* series of a pass, of which the median counts; of time_copies */
enum { SERIES = 20, QUICK_SERIES = 2 };  /* milliseconds */

typedef struct calibration {
    const char *path;
    FILE *out; /* of rank 0; NULL */
    trama_context *context;
    trama_mesh *mesh;         /* all ranks */
    int rank, ranks, workers; /* of this rank */
    int least;                /* workers that every rank has at least: all ranks record the same */
    machine_lines *lines;
    int passes;         /* over all measurements */
    double seconds;     /* of a series, of one op */
    double task;        /* seconds, with those of its submission where that has no core of its own */
    double memory;      /* B/s of additions beyond a core's cache, results counted twice */
    double near_memory; /* the same of some MB */
    double operand;     /* seconds of a task for each further operand */
    double evicted;     /* seconds more, as `task`, where tasks of a run bring evict_bytes into a core's cache */
    double submit;      /* seconds of a task's submission, beside its operands */
    int cores;          /* of all ranks */
    double spread;      /* bytes of a worker's copies, so that those of a core are SPREAD_BYTES */
    bool own_core;      /* each rank has one beside its workers */
} calibration;

/* SPREAD_BYTES: of the copies on a core, so that each comes from the last cache, where a core's share of that is as
 * large. */
enum { SPREAD_BYTES = 8 << 20 };

/* Of a worker, which put the data of the run before out of the last cache. */
static inline double evict_bytes(const calibration *c)
{
    return 4 * c->spread;
}

/* Records one copy of what is measured, on pieces of `size` of each rank. */
typedef trama_value *record_copy(const calibration *c, trama_program *p, int copy, int64_t size);

typedef struct measured {
    double run, submit; /* seconds of a run, and of the core in which the program's thread submits and awaits it */
    double busy;        /* seconds of cores that the rank had in a run */
    double kernel;      /* seconds of a core in a kernel that counts them, on the average; 0: none does */
    int tasks;          /* of a rank */
} measured;

/* Around the work of a kernel, on its worker. */
double kernel_begins(void);
void kernel_ends(double begun);

/* Runs the program's target in series, which is about `work` seconds of a core a run; all ranks make the same number.
 * Ends the program for t NULL, with the program's error. */
measured time_program(const calibration *c, trama_program *p, const trama_target *t, double work);

/* The same of a program that reads a scalar f32 after each run, two runs late. */
measured time_reads(const calibration *c, trama_program *p, const trama_target *t, const trama_value *scalar,
                    double work);

/* The same of copies of one op that do not need each other. */
measured time_copies(const calibration *c, record_copy *record, int64_t size, int copies, double work);

/* Of a task or an exchange: seconds of a core, and of the submitting thread. */
typedef struct core_cost {
    double seconds, submit;
} core_cost;

/* How many times as long such threads take as one alone would. */
double sharing(int threads, int cores);

/* Seconds of a core for a task. Where workers share cores they are counted by the system, for the rank's share changes.
 */
double task_seconds(const calibration *c, const measured *m);

/* Seconds of a core for a task without its work, where the tasks of a run bring so many bytes into a core's cache. */
double overhead_beside(const calibration *c, double bytes);

/* A task is taken to need at least a tenth of its time for more than its overhead. */
double beyond_overhead(double seconds, double overhead);

/* B/s of bytes that take so many seconds more than others from near memory: a rehearsal adds the difference. */
double slower_rate(const calibration *c, double bytes, double more);

/* The tasks of one op at one size: seconds on a worker, and a task's share of `work`, which is flop or bytes of a copy.
 * Copies push each other out of the caches, as the tensors of a program do. */
typedef struct sample {
    double seconds, work;
    double kernel; /* as measured.kernel */
} sample;

/* bytes: of a copy's operands; rate: of work, about. */
sample sample_of(const calibration *c, record_copy *record, int64_t size, double bytes, double work, double rate);

/* A line of the machine, with up to MOST_QUANTITIES quantities; the first without a unit ends them. */
void say(const calibration *c, const char *word, const quantity of[MOST_QUANTITIES]);
/* work: flop or bytes of the task that has the rate; 0: any. */
void say_rate(const calibration *c, const char *what, double rate, double work, const char *unit);

#endif
