/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that begin with their size, between a program and a library of different versions. A later version is the
 * struct with fields behind it; an earlier one ends sooner. */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "sized.h"
#include "suite.h"
#include "trama_op_define.h"

static trama_status nothing(const trama_call *call)
{
    (void)call;
    return TRAMA_OK;
}

static const trama_op_definition neg = {.name = "mine", .n_in = 1, .n_out = 1, .rule = "...->...", .cpu = nothing};

/* Defines it with the size, out of a struct that has `more` behind today's fields. */
static trama_status define(size_t size, int64_t more)
{
    struct {
        trama_op_definition is;
        int64_t more;
    } later;
    const trama_op *op = NULL;
    memset(&later, 0, sizeof later);
    later.is = neg;
    later.is.size = size;
    later.more = more;
    trama_status status = trama_op_define(&later.is, &op);
    trama_op_destroy(&op);
    return status;
}

START_TEST(a_size_of_0_and_the_size_of_the_struct_are_taken)
{
    ck_assert_int_eq(define(0, 0), TRAMA_OK);
    ck_assert_int_eq(define(sizeof(trama_op_definition), 0), TRAMA_OK);
}
END_TEST

START_TEST(fields_beyond_the_size_are_not_read)
{
    ck_assert_int_eq(define(0, 1), TRAMA_OK);
    ck_assert_int_eq(define(sizeof(trama_op_definition), 1), TRAMA_OK);
}
END_TEST

START_TEST(a_larger_struct_is_taken_where_the_fields_that_only_it_has_are_0)
{
    ck_assert_int_eq(define(sizeof(trama_op_definition) + sizeof(int64_t), 0), TRAMA_OK);
    ck_assert_int_eq(define(sizeof(trama_op_definition) + sizeof(int64_t), 1), TRAMA_E_ARGUMENT);
    ck_assert_msg(strstr(trama_error(), "compiled with a later one") && strstr(trama_error(), "test_sized.c"), "%s",
                  trama_error());
}
END_TEST

START_TEST(a_size_that_no_version_has_is_refused)
{
    const size_t wrong[] = {1, 16, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(define(wrong[i], 0), TRAMA_E_ARGUMENT);
        ck_assert_msg(strstr(trama_error(), "sizeof(trama_op_definition)"), "%s", trama_error());
    }
}
END_TEST

/* A struct whose first version had `a`, the second `b` too. */
typedef struct pair {
    size_t size;
    int64_t a, b;
} pair;

START_TEST(fields_that_an_earlier_program_has_not_are_0_and_stay_as_they_are)
{
    const size_t first = offsetof(pair, b);
    pair own, given = {.size = first, .a = 1, .b = 2};
    ck_assert_int_eq(sized_read(NOWHERE, "call", SIZED(pair, a), &own, &given), TRAMA_OK);
    ck_assert(own.size == sizeof(pair) && own.a == 1 && own.b == 0);

    own = (pair){.a = 3, .b = 4};
    ck_assert_int_eq(sized_write(NOWHERE, "call", SIZED(pair, a), &own, &given), TRAMA_OK);
    ck_assert(given.size == first && given.a == 3 && given.b == 2);
    given.size = 0;
    ck_assert_int_eq(sized_write(NOWHERE, "call", SIZED(pair, a), &own, &given), TRAMA_OK);
    ck_assert(given.size == 0 && given.a == 3 && given.b == 2);
    given.size = sizeof given;
    ck_assert_int_eq(sized_write(NOWHERE, "call", SIZED(pair, a), &own, &given), TRAMA_OK);
    ck_assert(given.size == sizeof given && given.b == 4);
}
END_TEST

START_TEST(fields_that_only_a_later_program_has_are_filled_with_0)
{
    struct {
        pair is;
        int64_t more;
    } later = {{.size = sizeof later}, 7};
    const pair own = {.a = 3, .b = 4};
    ck_assert_int_eq(sized_write(NOWHERE, "call", SIZED(pair, a), &own, &later), TRAMA_OK);
    ck_assert(later.is.size == sizeof later && later.is.a == 3 && later.is.b == 4 && later.more == 0);
}
END_TEST

START_TEST(options_of_a_later_program_are_refused_and_its_log_is_not_called)
{
    struct {
        trama_config is;
        int64_t more;
    } later = {{.size = sizeof later, .workers = 3}, 0};
    trama_config resolved;
    ck_assert_msg(!config_resolve(&later.is, &resolved), "%s", trama_error());
    ck_assert_int_eq(resolved.workers, 3);
    later.more = 1;
    ck_assert_int_eq(config_resolve(&later.is, &resolved), TRAMA_E_ARGUMENT);
    ck_assert(config_logs_to_stderr(&resolved));
}
END_TEST

START_TEST(the_version_of_headers_and_library_agree)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", TRAMA_VERSION_MAJOR, TRAMA_VERSION_MINOR, TRAMA_VERSION_PATCH);
    ck_assert_str_eq(trama_version(), expected);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_size_of_0_and_the_size_of_the_struct_are_taken,
                            fields_beyond_the_size_are_not_read,
                            a_larger_struct_is_taken_where_the_fields_that_only_it_has_are_0,
                            a_size_that_no_version_has_is_refused,
                            fields_that_an_earlier_program_has_not_are_0_and_stay_as_they_are,
                            fields_that_only_a_later_program_has_are_filled_with_0,
                            options_of_a_later_program_are_refused_and_its_log_is_not_called,
                            the_version_of_headers_and_library_agree};
    return suite_run("sized", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
