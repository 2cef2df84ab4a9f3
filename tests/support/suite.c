/* SPDX-License-Identifier: Apache-2.0 */
/* Check programs. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

int suite_run(const char *name, SFun set_up, SFun tear_down, const TTest *const *tests, size_t n)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

int suite_stride(void)
{
    return suite_is_sanitized() && !suite_is_long() ? 8 : 1;
}

bool suite_skips(bool when, const char *what)
{
    if (when)
        fprintf(stderr, "skipped: %s\n", what);
    return when;
}

bool suite_is_long(void)
{
    const char *value = getenv("TRAMA_TEST_LONG");
    return value && value[0] == '1';
}

bool suite_is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}
