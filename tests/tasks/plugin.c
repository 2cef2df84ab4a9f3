/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that links Trama, begins work, and says nothing of its end: plugin_host.c unloads it. */
#include <stdio.h>

#include "trama.h"

enum { N = 1000, RUNS = 20 };

int plugin_begin(void);

int plugin_begin(void)
{
    trama_context *context;
    trama_executable *e;
    trama_program *p = trama_program_create();
    trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(N, N), &(trama_init){.low = -1, .high = 1});
    trama_target *t = trama_target_create(p, "t", trama_matmul(w, w));
    trama_status status = trama_start(&(trama_config){.max_in_flight = RUNS}, &context);
    if (!status)
        status = trama_compile(context, p, &e);
    for (int i = 0; i < RUNS && !status; i++)
        status = trama_run(e, t);
    if (status)
        fprintf(stderr, "%s\n", trama_error());
    return (int)status;
}
