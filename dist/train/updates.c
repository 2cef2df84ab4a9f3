/* SPDX-License-Identifier: Apache-2.0 */
/* The slots and numbers that an optimizer's rule asks for, and the state that it sets. */
#include "updates.h"

#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "trama_ops.h"

/* ---- State ---- */

/* Finds or makes state by name. In eager mode each step is recorded again and finds the state of the step before. In a
 * recorded program, state older than this trama_minimize belongs to another optimizer: an error. */
static trama_value *state_named(const trama_updates *all, const char *name, trama_dtype dtype, trama_shape shape,
                                double initial)
{
    trama_program *p = all->program;
    trama_value *v = program_leaf_named(p, name, NULL);
    if (!v || v->kind != VALUE_STATE)
        return trama_state_at(all->where, p, name, dtype, shape, &(trama_init){.low = initial, .high = initial});
    if (p->session || v->id >= all->first_value)
        return v;
    return program_fail(p, all->where, TRAMA_E_ARGUMENT,
                        "minimize: the state '%s' is there already (%s:%d): another optimizer updates it", name,
                        v->where.file, v->where.line);
}

trama_value *updates_state(const trama_updates *all, const char *what, trama_dtype dtype, double initial)
{
    text name = {0};
    text_add(&name, "%s.%s", all->optimizer->name, what);
    if (!all->program->session)
        text_add(&name, "%d", all->program->values.n);
    trama_value *v = state_named(all, name.at, dtype, TRAMA_SCALAR, initial);
    free(name.at);
    return v;
}

trama_value *trama_update_slot(const trama_update *u, const char *suffix)
{
    text name = {0};
    if (!u)
        return NULL;
    if (!suffix || !*suffix)
        return program_fail(u->all->program, u->where, TRAMA_E_ARGUMENT,
                            "minimize: a slot that the rule of %s asks for has no name", u->optimizer->name);
    text_add(&name, "%s.%s", u->parameter->name, suffix);
    trama_value *v = state_named(u->all, name.at, u->parameter->dtype, u->parameter->shape, 0);
    free(name.at);
    if (v)
        v->state->slot_of = u->parameter;
    if (v && u->all->program->session && !v->mesh && u->parameter->mesh) { /* the user's annotation of the parameter */
        v->mesh = u->parameter->mesh;
        program_lay_out(v, *u->parameter->layout);
        v->annotated.where = u->parameter->annotated.where;
    }
    return v;
}

void updates_effect(const trama_updates *all, trama_value *updated)
{
    if (updated)
        *ARRAY_PUSH(&all->effect->update->updated) = updated;
}

/* ---- Values for rules ---- */

trama_value *updates_number(const trama_updates *all, trama_dtype dtype, double value)
{
    return trama_fill_at(all->where, all->program, dtype, TRAMA_SCALAR, value);
}

trama_value *updates_cast(trama_updates *all, trama_value *value, trama_dtype dtype)
{
    for (int i = 0; i < all->converted.n; i++)
        if (all->converted.at[i].from == value && all->converted.at[i].to->dtype == dtype)
            return all->converted.at[i].to;
    trama_value *to = trama_cast_at(all->where, value, dtype);
    if (to)
        *ARRAY_PUSH(&all->converted) = (converted){value, to};
    return to;
}

static bool is_constant(const trama_schedule *s)
{
    return !s->factor && !s->warmup;
}

static trama_value *scheduled_lr(const trama_update *u)
{
    trama_updates *all = u->all;
    const trama_optimizer *o = u->optimizer;
    for (int i = 0; i < all->converted.n; i++)
        if (all->converted.at[i].from == o)
            return all->converted.at[i].to;
    trama_attributes a = {
        .integer = {[SCHEDULE_WARMUP] = o->schedule.warmup, [SCHEDULE_FACTOR] = (intptr_t)o->schedule.factor},
        .real = {[SCHEDULE_LR] = o->lr}};
    memcpy(&a.real[SCHEDULE_NUMBERS], o->schedule.numbers, sizeof o->schedule.numbers);
    trama_value *step = trama_update_step(u), *lr = program_append(NULL, all->where, &trama_op_schedule, 1, &step, &a);
    if (lr)
        *ARRAY_PUSH(&all->converted) = (converted){o, lr};
    if (o == all->optimizer)
        all->step[TRAMA_STEP_LR] = lr;
    return lr;
}

trama_value *trama_update_lr(const trama_update *u)
{
    if (!u)
        return NULL;
    trama_dtype dtype = u->parameter->dtype;
    return is_constant(&u->optimizer->schedule) ? updates_number(u->all, dtype, u->optimizer->lr)
                                                : updates_cast(u->all, scheduled_lr(u), dtype);
}

bool updates_are_constant(const trama_update *u, double *lr)
{
    *lr = u->optimizer->lr;
    return is_constant(&u->optimizer->schedule) && !u->all->step[TRAMA_STEP_TAKEN];
}

trama_value *trama_update_taken(const trama_update *u)
{
    if (!u)
        return NULL;
    trama_value *taken = u->all->step[TRAMA_STEP_TAKEN];
    return taken ? taken : updates_number(u->all, TRAMA_U8, 1);
}

trama_value *updates_assign(const trama_updates *all, trama_value *state, trama_value *value)
{
    trama_value *in[] = {state, value, all->step[TRAMA_STEP_TAKEN]};
    return in[2] ? program_append(all->program, all->where, &trama_op_assign_if, 3, in, NULL)
                 : apply2(all->where, &trama_op_assign, state, value);
}

/* Adds 1 to the counter, if the step is taken. */
static trama_value *counted(const trama_updates *all, trama_value *counter)
{
    return all->step[TRAMA_STEP_TAKEN]
               ? updates_assign(all, counter, trama_add_at(all->where, counter, updates_number(all, TRAMA_I64, 1)))
               : apply1(all->where, &trama_op_increment, counter);
}

trama_value *trama_update_step(const trama_update *u)
{
    if (!u)
        return NULL;
    trama_updates *all = u->all;
    trama_value **step = &all->step[TRAMA_STEP_NUMBER];
    if (!*step) {
        *step = counted(all, updates_state(all, "step", TRAMA_I64, 0));
        updates_effect(all, *step);
    }
    return *step;
}

void trama_update_set(const trama_update *u, trama_value *state, trama_value *value)
{
    if (u && state && value && state != value)
        *ARRAY_PUSH(&u->all->assignments) = (assignment){state, value};
}
