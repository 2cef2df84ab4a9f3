/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the options of an optimizer, and finds the parameters that it trains and the optimizer of each. */
#include <math.h>
#include <string.h>

#include "optimizer.h"

/* ---- Options ---- */

static bool check_optimizer(trama_where where, trama_program *p, const trama_optimizer *o)
{
    if (!o || !o->rule || !o->name)
        return program_fail(p, where, TRAMA_E_ARGUMENT, "minimize: the optimizer %s",
                            !o         ? "is NULL; trama_sgd and its like fill one in"
                            : !o->name ? "has no name"
                                       : "has no rule"),
               false;
    const trama_loss_scale *s = &o->loss_scale;
    const struct {
        bool right;
        const char *what;
        double is;
    } checks[] = {
        {o->lr >= 0 && isfinite(o->lr), "the learning rate must be a number from 0", o->lr},
        {o->weight_decay >= 0 && isfinite(o->weight_decay), "the weight decay must be a number from 0",
         o->weight_decay},
        {o->momentum >= 0 && o->momentum < 1, "the momentum must be in [0, 1)", o->momentum},
        {!o->nesterov || o->momentum > 0, "nesterov needs a momentum", o->momentum},
        {o->beta1 >= 0 && o->beta1 < 1, "beta1 must be in [0, 1)", o->beta1},
        {o->beta2 >= 0 && o->beta2 < 1, "beta2 must be in [0, 1)", o->beta2},
        {!o->schedule.wrong, o->schedule.wrong, o->schedule.numbers[0]},
        {o->schedule.warmup >= 0, "the warm-up must have at least 0 steps", (double)o->schedule.warmup},
        {s->initial >= 0 && isfinite(s->initial), "the loss scale must be a number from 0", s->initial},
        {!s->initial || (s->growth >= 1 && isfinite(s->growth)), "the growth of the scale must be from 1", s->growth},
        {!s->initial || (s->backoff > 0 && s->backoff <= 1), "the backoff of the scale must be in (0, 1]", s->backoff},
        {!s->initial || s->interval >= 1, "the interval of the scale must have at least 1 step", (double)s->interval},
        {o->clip_value > 0, "clip_value must be above 0", o->clip_value},
        {o->clip_norm > 0, "clip_norm must be above 0", o->clip_norm},
        {o->eps >= 0 && isfinite(o->eps), "eps must be a number from 0", o->eps},
        {o->share_bytes >= 0, "share_bytes must not be negative", (double)o->share_bytes},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!checks[i].right)
            return program_fail(p, where, TRAMA_E_ARGUMENT, "minimize: %s: %s, it is %g", o->name, checks[i].what,
                                checks[i].is),
                   false;
    return true;
}

/* ---- Groups ---- */

/* Whether a name matches the first entry of a list with commas; moves *names past the entry. */
static bool next_name_is(const char **names, const char *name)
{
    size_t n = strcspn(*names, ",");
    bool begins = n && (*names)[n - 1] == '*',
         is = begins ? !strncmp(*names, name, n - 1) : strlen(name) == n && !strncmp(*names, name, n);
    *names += n + ((*names)[n] == ',');
    return is;
}

static bool is_listed(const char *names, const char *name)
{
    while (*names)
        if (next_name_is(&names, name))
            return true;
    return false;
}

static bool is_trained(const trama_value *v)
{
    return v && v->state->trainable && trama_dtype_is_float(dtype_part(v->dtype));
}

/* Every name of a group must match a parameter. */
static bool check_names(trama_where where, trama_program *p, const trama_parameter_group *g)
{
    for (const char *names = g->parameters; *names;) {
        const char *name = names;
        bool found = false;
        for (int i = 0; i < p->values.n; i++) {
            names = name;
            found |= is_trained(p->values.at[i]) && next_name_is(&names, p->values.at[i]->name);
        }
        names = name + strcspn(name, ",");
        if (!found)
            return program_fail(p, where, TRAMA_E_ARGUMENT,
                                "minimize: no parameter is named '%.*s', which a group names", (int)(names - name),
                                name),
                   false;
        names += *names == ',';
    }
    return true;
}

static bool check_groups(trama_where where, trama_program *p, const trama_optimizer *o)
{
    if (o->n_groups < 0 || (o->n_groups && !o->groups))
        return program_fail(p, where, TRAMA_E_ARGUMENT, "minimize: %s has %d groups%s", o->name, o->n_groups,
                            o->n_groups < 0 ? ", a negative number" : ", and their list is NULL"),
               false;
    for (int i = 0; i < o->n_groups; i++) {
        const trama_parameter_group *g = &o->groups[i];
        if (!g->parameters)
            return program_fail(p, where, TRAMA_E_ARGUMENT, "minimize: group %d names no parameters", i), false;
        if (!check_names(where, p, g) || (g->optimizer && !check_optimizer(where, p, g->optimizer)))
            return false;
    }
    return true;
}

/* Appends the parameter to the list with the optimizer of its group, unless it is frozen. */
static bool add_trained(trama_where where, trama_value *parameter, const trama_optimizer *o, trained_list *list)
{
    const trama_parameter_group *group = NULL;
    for (int i = 0; i < o->n_groups; i++) {
        if (!is_listed(o->groups[i].parameters, parameter->name))
            continue;
        if (group)
            return program_fail(parameter->program, where, TRAMA_E_ARGUMENT,
                                "minimize: %s is in two groups, '%s' and '%s'", parameter->name, group->parameters,
                                o->groups[i].parameters),
                   false;
        group = &o->groups[i];
    }
    if (!group || group->optimizer)
        *ARRAY_PUSH(list) = (trained){.parameter = parameter, .optimizer = group ? group->optimizer : o};
    return true;
}

bool optimizer_trains(trama_where where, trama_program *p, const trama_optimizer *o, trained_list *list)
{
    if (!check_optimizer(where, p, o) || !check_groups(where, p, o))
        return false;
    for (int i = 0; i < p->values.n; i++)
        if (is_trained(p->values.at[i]) && !add_trained(where, p->values.at[i], o, list))
            return false;
    return true;
}
