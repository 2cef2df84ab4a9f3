/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU's variables: the values before ours, and checks of the two forms of value, numbers and lists. */
#include "environment.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    const char *name;
    char *before; /* NULL: was not set */
} changed[32];
static int n_changed;

void environment_set(const char *name, const char *value, bool ours)
{
    if (getenv(name) && !ours)
        return;
    assert(n_changed < (int)(sizeof changed / sizeof *changed));
    changed[n_changed].name = name;
    changed[n_changed++].before = trama_text_copy(getenv(name));
    setenv(name, value, 1);
}

void environment_set_number(const char *name, int value)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", value);
    environment_set(name, digits, false);
}

void environment_restore(void)
{
    while (n_changed > 0) {
        n_changed--;
        if (changed[n_changed].before)
            setenv(changed[n_changed].name, changed[n_changed].before, 1);
        else
            unsetenv(changed[n_changed].name);
        free(changed[n_changed].before);
    }
}

/* ---- The user's values ---- */

/* Whether a number of digits only, at least `least`, begins here; *end: the character after it. */
static bool is_number(const char *at, long least, char **end)
{
    errno = 0;
    *end = (char *)(uintptr_t)at;
    return isdigit((unsigned char)*at) && strtol(at, end, 10) >= least && !errno;
}

/* "0 2 4-7,9-" */
static bool is_list(const char *at)
{
    char *end;
    do {
        if (!is_number(at, 0, &end))
            return false;
        at = end + (*end == '-');
        if (at > end && isdigit((unsigned char)*at) && is_number(at, 0, &end))
            at = end;
        at += *at == ',' || *at == ' ';
    } while (*at);
    return true;
}

/* StarPU has over 100 variables. These are the ones that Trama reads or sets, and those of workers. */
enum { LIST = -1 };
static const struct {
    const char *name;
    int least; /* least number, or LIST */
} known[] = {
    {"STARPU_NCPU", 1},
    {"STARPU_WORKERS_CPUID", LIST},
    {"STARPU_WORKERS_COREID", LIST},
    {"STARPU_WORKERS_CUDAID", LIST},
    {"STARPU_WORKERS_NOBIND", 0},
    {"STARPU_MPI_THREAD_CPUID", 0},
    {"STARPU_MPI_THREAD_COREID", 0},
    {"STARPU_MPI_NOBIND", 0},
    {"STARPU_MPI_DRIVER_CALL_FREQUENCY", 0},
    {"STARPU_MPI_DRIVER_TASK_FREQUENCY", 0},
    {"STARPU_MPI_NDETACHED_SEND", 0},
    {"STARPU_MPI_CACHE", 0},
    {"STARPU_NWORKER_PER_CUDA", 1},
    {"STARPU_LIMIT_CUDA_MEM", 0},
    {"STARPU_LIMIT_CPU_MEM", 0},
    {"STARPU_SUBALLOCATOR", 0},
    {"STARPU_NCUDA", 0},
    {"STARPU_SILENT", 0},
    {"STARPU_USE_NUMA", 0},
    {"STARPU_CATCH_SIGNALS", 0},
    {"STARPU_TRACE_BUFFER_SIZE", 1},
};

trama_status environment_check(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *value = getenv(known[i].name);
        text expected = {0};
        char *end;
        if (!value || (known[i].least == LIST ? is_list(value) : is_number(value, known[i].least, &end) && !*end))
            continue;
        if (known[i].least == LIST)
            text_add(&expected, "numbers and ranges such as \"0 2 4-7\" are");
        else
            text_add(&expected, "a number of at least %d is", known[i].least);
        trama_status status =
            trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s is \"%s\": %s expected", known[i].name, value, expected.at);
        free(expected.at);
        return status;
    }
    return TRAMA_OK;
}
