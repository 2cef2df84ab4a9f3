/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the values that live from run to run, for checkpoints. It reads and writes none of them. */
#include <string.h>

#include "executable.h"
#include "trama_state.h"

/* Buffers of merged gradients exist once a cycle has more than one micro-step. */
static bool is_listed(const trama_executable *e, const trama_value *v)
{
    return v && value_is_state(v) && (!v->state->terms || (v->id < e->n_value_refs && e->at[v->id].in));
}

int trama_state_count(const trama_executable *e)
{
    int n = 0;
    for (int i = 0; e && i < e->program->values.n; i++)
        n += is_listed(e, e->program->values.at[i]);
    return n;
}

const trama_value *trama_state_number(const trama_executable *e, int number)
{
    for (int i = 0; e && i < e->program->values.n; i++)
        if (is_listed(e, e->program->values.at[i]) && number-- == 0)
            return e->program->values.at[i];
    return NULL;
}

const trama_value *trama_state_find(const trama_executable *e, const char *name)
{
    for (int i = 0; e && name && i < e->program->values.n; i++)
        if (is_listed(e, e->program->values.at[i]) && !strcmp(e->program->values.at[i]->name, name))
            return e->program->values.at[i];
    return NULL;
}
