/* SPDX-License-Identifier: Apache-2.0 */
/* How the examples end when something fails: one message on stderr, exit status 1. */
#ifndef EXAMPLES_MUST_H
#define EXAMPLES_MUST_H

#include <stdio.h>

#include "trama.h"

/* Prints the program's name and the message, and ends the program with status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with trama_error() unless the call succeeded. */
void must(trama_status status);

/* Zeroed memory for count elements; ends the program where there is none. The caller frees. */
void *must_allocate(int64_t count, size_t size);

/* Closes the file; false, with errno, where anything that was put into it could not be written. */
bool close_written(FILE *file);

#endif
