/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the values of command line options. A wrong value ends the program with argp_error, which names option and
 * value. Knows no option by itself. */
#ifndef EXAMPLES_ARGUMENTS_H
#define EXAMPLES_ARGUMENTS_H

#include <argp.h>

#include "trama.h"

/* A parser that takes only options returns this for a key that it does not know. An argument ends the program. */
error_t argument_unknown(int key, const char *text, const struct argp_state *state);

/* A whole number from low to high. */
int64_t argument_integer(const struct argp_state *state, const char *option, const char *text, int64_t low,
                         int64_t high);

/* As above, up to 2^64 - 1. */
uint64_t argument_unsigned(const struct argp_state *state, const char *option, const char *text);

/* A finite number; one above 0. */
double argument_number(const struct argp_state *state, const char *option, const char *text);
double argument_positive(const struct argp_state *state, const char *option, const char *text);

/* Whole numbers from low to high between commas, 1 to most of them, into list; returns how many. */
int argument_list(const struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high,
                  int most, int64_t *list);

/* The index of text among n words. */
int argument_word(const struct argp_state *state, const char *option, const char *text, int n,
                  const char *const *words);

/* cpu, gpu or auto, for the trama_start that follows. */
void argument_device(const struct argp_state *state, const char *option, const char *text);

/* Extents of at most 2^48 elements; an empty text is a scalar. */
trama_shape argument_shape(const struct argp_state *state, const char *option, const char *text);

/* A layout of a tensor of ndim dims, in any form that trama_layout_parse takes. */
trama_layout argument_layout(const struct argp_state *state, const char *option, const char *text,
                             const trama_mesh *mesh, int ndim);

/* A mesh whose axes of more than one process are all among the n names; names NULL: any mesh. The caller destroys it.
 */
trama_mesh *argument_mesh(const struct argp_state *state, const char *option, const char *text, int n,
                          const char *const *names);

#endif
