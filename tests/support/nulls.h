/* SPDX-License-Identifier: Apache-2.0 */
/* NULL where a pointer should be: the call has an answer, and says in words what is wrong. tests/nulls looks whether
 * every function of the public headers is called so, with NULL for each of its pointers. */
#ifndef NULLS_H
#define NULLS_H

#include <check.h>
#include <string.h>

#include "base.h"
#include "trama_program.h"

static const char *const no_text = NULL; /* for formats, in which the compiler sees a NULL */

static inline void before_call(void)
{
    trama_fail(NOWHERE, TRAMA_OK, "nothing was said");
}

static inline void check_refused(int line, const char *call, trama_status got)
{
    ck_assert_msg(got != TRAMA_OK, "line %d: %s: accepted", line, call);
    ck_assert_msg(strcmp(trama_error(), "nothing was said") != 0, "line %d: %s: no message", line, call);
    ck_assert_msg(strcmp(trama_error(), "") != 0, "line %d: %s: an empty message", line, call);
}

static inline void check_said(int line, const char *call, bool nothing)
{
    ck_assert_msg(nothing, "line %d: %s: it gave something", line, call);
    ck_assert_msg(strcmp(trama_error(), "nothing was said") != 0, "line %d: %s: no message", line, call);
}

/* A status and a message. */
#define REFUSES(call) (before_call(), check_refused(__LINE__, #call, call))
/* NULL and a message, which a program then has: it is forgotten. */
#define SAYS(program, call) (before_call(), check_said(__LINE__, #call, !(call)), trama_program_clear_error(program))
/* NULL for NULL: the first error was said before. */
#define PASSES(call) ck_assert_msg(!(call), "line %d: %s gave something", __LINE__, #call)
/* NULL stands for something there. */
#define TAKES(call) ck_assert_msg((call) == TRAMA_OK, "line %d: %s: %s", __LINE__, #call, trama_error())
#define GIVES(value, call) ck_assert_msg((call) == (value), "line %d: %s is not %s", __LINE__, #call, #value)

#endif
