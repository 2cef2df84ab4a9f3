/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of the benchmark share this: the clock, complaints, and the service by which tests/bench/run lets them
 * work in turns. They report seconds; ratios and intervals are the script's business. */
#ifndef BENCH_H
#define BENCH_H

#include "trama.h"

double bench_now(void); /* seconds, monotonic, one clock for all ranks of a node */
int bench_cores(void);  /* that this process may use */

/* A message to stderr, and the end. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_try(trama_status status, const char *what); /* fails with trama_error() unless OK */

/* The value of option --name among the arguments, or the default. */
const char *bench_option(int argc, char **argv, const char *name, const char *otherwise);
int bench_number(int argc, char **argv, const char *name, int otherwise); /* >= 1 */
trama_dtype bench_dtype(int argc, char **argv);                           /* --dtype, else f32 */

/* BLAS as outside of any task: the kernels that Trama uses, on this many threads. */
void bench_blas(int threads);

/* n units of work, all done on return. */
typedef void (*bench_turn)(void *arg, int n);

/* A program of one target that is run as it is. */
typedef struct bench_target {
    trama_executable *executable;
    trama_target *target;
} bench_target;
void bench_run_target(void *target, int n); /* a bench_turn */

/* plan NULL, "steps", or anything else for the summary: prints what a run of the target does, to stderr. */
void bench_print_plan(const bench_target *target, const char *plan);

/* Compiles the program, prints the plan, serves, and ends what it has started. */
void bench_serve_program(trama_program *program, trama_target *target, const char *plan);

/* Reads commands from stdin until its end, and answers each with a line on stdout:
 *   "run N"   N units; the seconds from the first rank's start to the last one's end
 *   "idle S"  from 100 ms after the last work on: CPU seconds that all ranks used in S seconds
 * Between commands every rank sleeps in the kernel. Collective. */
void bench_serve(int rank, int ranks, bench_turn turn, void *arg);

#endif
