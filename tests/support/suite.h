/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of a Check program with one list of tests. */
#ifndef SUITE_H
#define SUITE_H

#include <check.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* set_up and tear_down run around each test, in its process; NULL: nothing. Returns the exit status. */
int suite_run(const char *name, SFun set_up, SFun tear_down, const TTest *const *tests, size_t n);

/* Whether the environment asks for exhaustive variants: TRAMA_TEST_LONG=1. */
bool suite_is_long(void);

/* Whether a sanitizer keeps memory for a while or shadows it, and slows everything down. */
bool suite_is_sanitized(void);

/* The step through a list of like cases that each start a program: 1; under a sanitizer 8, if the environment does not
 * ask for exhaustive variants. */
int suite_stride(void);

/* Returns `when`, and says where it is true that a part of the program is skipped, and why: no test passes in silence. */
bool suite_skips(bool when, const char *what);

#ifdef __cplusplus
}
#endif

#endif
