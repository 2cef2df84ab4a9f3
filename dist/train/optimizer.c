/* SPDX-License-Identifier: Apache-2.0 */
/* One step of an optimizer: gradients, their unscaling and clipping, and the calls of rules. */
#include "updates.h"

#include <math.h>
#include <stdlib.h>

#include "families.h"
#include "trama_ops.h"

/* The states of an update of smaller parameters stay in cache, and less time is saved than a gather takes. */
enum { SHARE_BYTES = 4 << 20 };

/* ---- Unscaling and clipping ---- */

/* The sum of squares over all gradients, in f64, which is finite iff they are (trama_loss_scale). The sums of single
 * gradients are added after all are recorded, so that none waits for another. */
static trama_value *sum_of_squares(const trama_updates *all, int n, const trained *parameters)
{
    trama_value **one = trama_alloc((size_t)n * sizeof(trama_value *)), *sum = NULL;
    for (int i = n - 1; i >= 0; i--)
        if (parameters[i].gradient)
            one[i] = trama_sum_square_at(all->where, parameters[i].gradient, 0, NULL, false);
    for (int i = n - 1; i >= 0; i--)
        if (one[i])
            sum = sum ? trama_add_at(all->where, sum, one[i]) : one[i];
    free(one);
    return sum;
}

/* 1 if x is finite, as u8: x - x is NaN where x is not finite. */
static trama_value *is_finite(const trama_updates *all, trama_value *x)
{
    return trama_equal_at(all->where, trama_sub_at(all->where, x, x), updates_number(all, TRAMA_F64, 0));
}

/* min(1, clip_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it. */
static trama_value *norm_factor(trama_updates *all, trama_value *norm)
{
    trama_value *divisor = trama_add_at(all->where, norm, updates_number(all, TRAMA_F64, 1e-6));
    trama_value *ratio = trama_div_at(all->where, updates_number(all, TRAMA_F64, all->optimizer->clip_norm), divisor);
    return trama_clamp_at(all->where, ratio, 0, 1);
}

/* x times factor; factor NULL: 1 */
static trama_value *times(const trama_updates *all, trama_value *x, trama_value *factor)
{
    return factor ? trama_mul_at(all->where, x, factor) : x;
}

/* The gradient times the common factor, clamped to the range. */
static trama_value *held(trama_updates *all, trama_value *gradient)
{
    trama_value *g = gradient;
    if (g && all->factor)
        g = trama_mul_at(all->where, g, updates_cast(all, all->factor, g->dtype));
    return isfinite(all->most) ? trama_clamp_at(all->where, g, -all->most, all->most) : g;
}

trama_value *trama_update_gradient(const trama_update *u)
{
    if (!u)
        return NULL;
    trama_updates *all = u->all;
    if (all->held)
        return all->held;
    return all->held = held(all, all->gradient);
}

/* Prepares factor and clamp. trama_update_gradient applies them when a rule asks, so that they fuse into the update's
 * task. */
static void prepare_gradients(trama_updates *all, int n, trained *parameters)
{
    const trama_optimizer *o = all->optimizer;
    trama_value *squares = NULL;
    all->most = o->clip_value;
    if (all->scale) {
        squares = sum_of_squares(all, n, parameters);
        all->step[TRAMA_STEP_TAKEN] = is_finite(all, squares);
        all->factor = trama_div_at(all->where, updates_number(all, TRAMA_F64, 1), all->scale);
    }
    if (!isfinite(o->clip_norm))
        return;
    if (isfinite(o->clip_value)) { /* the norm is that of the clamped gradients */
        for (int i = 0; i < n; i++)
            parameters[i].gradient = held(all, parameters[i].gradient);
        all->most = INFINITY;
        all->factor = squares = NULL;
    }
    squares = squares ? squares : sum_of_squares(all, n, parameters);
    trama_value *norm = times(all, trama_sqrt_at(all->where, squares), all->factor);
    all->step[TRAMA_STEP_NORM] = norm;
    all->factor = times(all, norm_factor(all, norm), all->factor);
}

/* ---- From gradients to updates ---- */

/* Assigns after the rule has returned, so that in eager mode, too, the rule reads the old content. */
static void assign_all(trama_updates *all, const trama_update *u)
{
    if (!all->assignments.n)
        program_fail(all->program, all->where, TRAMA_E_ARGUMENT, "minimize: the rule of %s sets nothing for %s",
                     u->optimizer->name, u->parameter->name);
    for (int i = 0; i < all->assignments.n; i++) {
        const assignment *a = &all->assignments.at[i];
        trama_value *updated =
            value_storage(a->value) == value_storage(a->state) ? a->value : updates_assign(all, a->state, a->value);
        updates_effect(all, updated);
    }
    all->assignments.n = 0;
}

/* Updates the last parameters first: their gradients are computed first. */
static void update_all(trama_updates *all, int n, const trained *parameters)
{
    for (int i = n - 1; i >= 0 && !all->program->status; i--) {
        const trained *t = &parameters[i];
        if (!t->gradient)
            continue;
        if (t->gradient->node)
            all->program->stage = t->gradient->node->stage;
        trama_update u = {all->where, t->optimizer, t->parameter, all};
        t->parameter->state->share_bytes = t->optimizer->share_bytes;
        all->gradient = t->gradient;
        all->held = NULL;
        u.optimizer->rule(&u);
        assign_all(all, &u);
    }
}

/* good: taken steps in a row; full: 1 after `interval` of them. */
static void update_scale(trama_updates *all)
{
    const trama_loss_scale *s = &all->optimizer->loss_scale;
    trama_where w = all->where;
    trama_value *taken = trama_cast_at(w, all->step[TRAMA_STEP_TAKEN], TRAMA_F64),
                *one = updates_number(all, TRAMA_F64, 1);
    trama_value *good = updates_state(all, "good", TRAMA_F64, 0),
                *next = trama_mul_at(w, trama_add_at(w, good, one), taken);
    trama_value *enough = updates_number(all, TRAMA_F64, (double)s->interval);
    trama_value *full = trama_cast_at(w, trama_equal_at(w, next, enough), TRAMA_F64);
    trama_value *factor =
        trama_add_at(w, updates_number(all, TRAMA_F64, s->backoff), trama_scale_at(w, taken, 1 - s->backoff));
    factor = trama_add_at(w, factor, trama_scale_at(w, full, s->growth - 1));
    next = trama_mul_at(w, next, trama_sub_at(w, one, full));
    factor = trama_mul_at(w, all->scale, factor);
    updates_effect(all, apply2(w, &trama_op_assign, good, next));
    updates_effect(all, apply2(w, &trama_op_assign, all->scale, factor));
}

/* Marks gradients that ops other than updates read to be reduced at once: otherwise each reader would sum the terms. */
static void settle_gradients(const trama_program *p, int first_node)
{
    for (int i = first_node; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in && !p->nodes.at[i]->op->updates; t++)
            p->nodes.at[i]->in[t]->gradient.reduce_at_once |= p->nodes.at[i]->in[t]->gradient.of != NULL;
}

/* Appends everything after the gradients. */
static void append_updates(trama_updates *all, int n, trained *parameters)
{
    int first_node = all->program->nodes.n, outer_stage = all->program->stage;
    for (int i = 0; i < n; i++)
        if (parameters[i].gradient) {
            *ARRAY_PUSH(&all->effect->update->trained) = parameters[i].parameter;
            *ARRAY_PUSH(&all->effect->update->raw) = parameters[i].gradient;
        }
    all->effect->update->first = first_node;
    for (int i = 0; i < n; i++)
        if (parameters[i].gradient && !parameters[i].gradient->gradient.of)
            parameters[i].gradient->gradient.of = parameters[i].parameter;
    prepare_gradients(all, n, parameters);
    update_all(all, n, parameters);
    if (all->scale)
        update_scale(all);
    all->effect->update->end = all->program->nodes.n;
    settle_gradients(all->program, first_node);
    all->program->stage = outer_stage;
}

/* ---- Minimizing ---- */

/* Derives the gradients; false, with an error, if there is none. */
static bool derive(const trama_updates *all, trama_value *loss, trained_list *list)
{
    size_t bytes = (size_t)list->n * sizeof(trama_value *);
    trama_value **x = trama_alloc(bytes), **d = trama_alloc(bytes);
    bool any = false;
    for (int i = 0; i < list->n; i++)
        x[i] = list->at[i].parameter;
    if (loss && program_gradients(all->where, loss, list->n, x, d))
        for (int i = 0; i < list->n; i++) {
            list->at[i].gradient = d[i];
            any |= d[i] != NULL;
        }
    if (!any && !all->program->status)
        program_fail(all->program, all->where, TRAMA_E_ARGUMENT, "minimize: %s depends on no parameter that is trained",
                     loss->name);
    free(x);
    free(d);
    return any;
}

static trama_value *scaled_loss(const trama_updates *all, trama_value *loss)
{
    return all->scale ? trama_mul_at(all->where, loss, trama_cast_at(all->where, all->scale, loss->dtype)) : loss;
}

trama_value *trama_minimize_at(trama_where where, trama_value *loss, const trama_optimizer *optimizer)
{
    trained_list list = {0};
    if (!program_check_loss(where, "minimize", loss) || !optimizer_trains(where, loss->program, optimizer, &list))
        return ARRAY_FREE(&list), NULL;
    trama_program *p = loss->program;
    trama_updates all = {.where = where, .optimizer = optimizer, .program = p, .first_value = p->values.n};
    node_role outer = p->role;
    p->role = NODE_UPDATE;
    if (optimizer->loss_scale.initial > 0)
        all.scale = updates_state(&all, "scale", TRAMA_F64, optimizer->loss_scale.initial);
    if (derive(&all, scaled_loss(&all, loss), &list)) {
        all.effect = program_value(p, where, VALUE_EFFECT, loss->dtype, TRAMA_SCALAR, optimizer->name);
        for (int i = 0; i < TRAMA_N_STEP_PARTS; i++)
            *ARRAY_PUSH(&all.effect->update->parts) = NULL;
        all.step = all.effect->update->parts.at;
        all.step[TRAMA_STEP_SCALE] = all.scale;
        append_updates(&all, list.n, list.at);
    }
    p->role = outer;
    ARRAY_FREE(&all.assignments);
    ARRAY_FREE(&all.converted);
    ARRAY_FREE(&list);
    return p->status ? NULL : all.effect;
}

trama_optimizer trama_optimizer_define(const char *name, double lr, trama_update_rule rule)
{
    return (trama_optimizer){.name = name,
                             .rule = rule,
                             .lr = lr,
                             .clip_value = INFINITY,
                             .clip_norm = INFINITY,
                             .share_bytes = SHARE_BYTES};
}

trama_loss_scale trama_loss_scale_dynamic(void)
{
    return (trama_loss_scale){.initial = 65536, .growth = 2, .backoff = 0.5, .interval = 2000};
}

trama_value *trama_step_value_at(trama_where where, trama_value *minimized, trama_step_part part)
{
    static const char *const names[] = {"number", "learning rate", "norm", "flag", "loss scale"};
    if (!minimized)
        return NULL;
    if ((unsigned)part >= TRAMA_N_STEP_PARTS || minimized->kind != VALUE_EFFECT ||
        (int)part >= minimized->update->parts.n || !minimized->update->parts.at[part])
        return program_fail(minimized->program, where, TRAMA_E_ARGUMENT, "step value: %s has no %s", minimized->name,
                            (unsigned)part < TRAMA_N_STEP_PARTS ? names[part] : "such thing");
    return minimized->update->parts.at[part];
}
