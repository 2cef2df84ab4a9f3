/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers. trama_minimize records one step: it derives the gradients, and the optimizer's rule records the update of
 * each parameter. Users write rules like the built-in ones:
 *
 *     static void heavy_ball(const trama_update *u)
 *     {
 *         trama_value *b = trama_update_slot(u, "b");
 *         trama_value *next = trama_add(trama_scale(b, 0.9), trama_update_gradient(u));
 *         trama_update_set(u, b, next);
 *         trama_update_set(u, u->parameter, trama_sub(u->parameter, trama_mul(trama_update_lr(u), next)));
 *     }
 *
 * An optimizer is a rule, a name and a learning rate:
 *
 *     trama_optimizer mine = trama_optimizer_define("heavy_ball", 0.1, heavy_ball);
 *
 * examples/own_rule.c is a whole program. */
#ifndef TRAMA_OPTIMIZER_H
#define TRAMA_OPTIMIZER_H

#include "trama_program.h"

TRAMA_API_BEGIN

typedef struct trama_update trama_update;       /* the argument of a rule */
typedef struct trama_optimizer trama_optimizer; /* a rule and its options */

enum { TRAMA_SCHEDULE_NUMBERS = 8 /* limit for one schedule */ };

/* A schedule: the learning rate of a step is the optimizer's lr times factor(n, numbers). n counts the steps taken,
 * from 0. In the first `warmup` steps n stays 0 and the rate rises in equal parts to that of n = 0. factor NULL: 1.
 * Every process calls a user's factor alike, on any thread; its result must depend on n and numbers only. */
typedef struct trama_schedule {
    double (*factor)(int64_t n, const double *numbers); /* factor of the learning rate; NULL: 1 */
    double numbers[TRAMA_SCHEDULE_NUMBERS];             /* passed to factor */
    int64_t warmup;    /* >= 0 */
    const char *wrong; /* NULL, or trama_minimize's error message for invalid numbers */
} trama_schedule;

trama_schedule trama_schedule_constant(int64_t warmup);            /* factor 1 after the warm-up */
trama_schedule trama_schedule_cosine(int64_t steps, double floor); /* cosine from 1 to floor in [0, 1], then floor */
trama_schedule trama_schedule_step(int64_t every, double factor);  /* factor^(n / every), rounded down; factor > 0 */
/* One cycle of Smith & Topin 2018, as PyTorch's OneCycleLR: along cosines from 1/25 to 1 over 0.3 of the steps, then
 * down to 1/25e4. */
trama_schedule trama_schedule_one_cycle(int64_t steps);

/* Loss scaling, for element types in which small gradients underflow: the loss is multiplied by a scale before it is
 * differentiated, and the gradients are divided by it. A step with a gradient that is not finite is not taken: it
 * changes only the scale, which is multiplied by backoff. After `interval` taken steps in a row the scale is multiplied
 * by growth. No process waits for the check. Gradients count as finite if their sum of squares is finite in f64: all of
 * f32, f64 up to 1e154. The scale is cast to the loss's type: with a loss in f16, a scale above 32768 makes a step that
 * is not taken. */
typedef struct trama_loss_scale {
    double initial;         /* > 0; 0: no scale, every step is taken */
    double growth, backoff; /* >= 1; in (0, 1]; both 1: the scale stays */
    int64_t interval;       /* >= 1 */
} trama_loss_scale;
trama_loss_scale trama_loss_scale_dynamic(void); /* initial 65536, growth 2, backoff 0.5, interval 2000, as PyTorch */

/* Records the ops that update one parameter. In a recorded program they read all state as it was before the step. */
typedef void (*trama_update_rule)(const trama_update *update);

/* Parameters that another optimizer updates: names with commas between; "b*" stands for all names that begin with b.
 * The rule, lr, schedule, share_bytes and rule options of that optimizer apply; clipping and loss scale are those of
 * trama_minimize's optimizer. optimizer NULL: the parameters are frozen. */
typedef struct trama_parameter_group {
    const char *parameters;           /* "w1,b*" */
    const trama_optimizer *optimizer; /* borrowed; NULL: frozen */
} trama_parameter_group;

/* An optimizer: a rule and its options. The functions below fill it in, and the user may change it before
 * trama_minimize, which checks the ranges and copies the options. A rule uses the options of its formula. State and lr
 * have the parameter's type. In bf16 a change of a parameter or an average by less than 2^-9 of it is lost; in f16
 * adam's squares of small gradients are 0. Keep such parameters in f32, and cast them where they are used. On x86 cores
 * numbers of a step below the least normal one, of f32 1.2e-38, count as 0. */
struct trama_optimizer {
    const char *name; /* for messages and names of state; borrowed */
    trama_update_rule rule;   /* updates one parameter */
    double lr;                /* >= 0 */
    trama_schedule schedule;  /* of lr; constant */
    double weight_decay;      /* >= 0 */
    double momentum;          /* sgd: in [0, 1) */
    bool nesterov;            /* sgd, with momentum */
    double beta1, beta2, eps; /* adam, adamw, lamb: in [0, 1); eps >= 0 */
    double clip_value; /* > 0: elements of gradients are clamped to +- it; INFINITY, the default: no clamp */
    /* > 0: all gradients are then multiplied by min(1, clip_norm / (norm + 1e-6)), where norm is the 2-norm over all of
     * them, on all meshes. INFINITY, the default: no clipping. */
    double clip_norm;
    trama_loss_scale loss_scale; /* initial 0: no scale */
    /* >= 0: a parameter of which processes hold so many bytes each, and several hold the same, is updated in parts: each
     * process sums and updates one, and the parts are gathered. It takes as many bytes as to gather the sums, and the
     * optimizer's states lie in these parts. 4 MiB by default; 0: none. Parameters with a mask, without a dim of nearly
     * even parts (the largest at most a quarter above the mean), with a gradient that a target names, or updated by an
     * op that is not pointwise are updated whole. Of several optimizers of a parameter the last one recorded decides.
     * Where a slot is annotated in parts of its parameter's layout, that decides. */
    int64_t share_bytes;
    int n_groups;                /* a parameter is in at most one group */
    const trama_parameter_group *groups; /* [n_groups]; borrowed */
};

/* Makes the optimizer sgd: g += weight_decay w; with momentum b = momentum b + g, and then g = b, or g += momentum b
 * for nesterov; w -= lr g. */
trama_optimizer trama_sgd(double lr); /* no momentum, no decay */
/* Makes the optimizer adam: Kingma & Ba 2015, algorithm 1, after g += weight_decay w: betas 0.9 0.999, eps 1e-8, no
 * decay. */
trama_optimizer trama_adam(double lr);
/* Makes the optimizer adamw: Loshchilov & Hutter 2019, algorithm 2, with the decay lr weight_decay w. Defaults as adam,
 * weight_decay 0.01. */
trama_optimizer trama_adamw(double lr);
/* Makes the optimizer lamb: You et al. 2020, algorithm 2, w -= lr (|w| / |update|) update, where update is adam's plus
 * weight_decay w; w -= lr update where a norm is 0. Defaults as adamw, eps 1e-6. */
trama_optimizer trama_lamb(double lr);
/* A user-defined optimizer. Its other options are 0 until the user sets them, and nothing is clipped. */
trama_optimizer trama_optimizer_define(const char *name, double lr, trama_update_rule rule);

/* Records one step of the optimizer on every parameter that the loss depends on. The result only goes into
 * trama_target_create. */
#define trama_minimize(loss, ...) trama_minimize_at(TRAMA_HERE, loss, __VA_ARGS__)
trama_value *trama_minimize_at(trama_where where, trama_value *loss, const trama_optimizer *optimizer);

/* A scalar of the step of `minimized`; a target that lists it lets the user read it. E_ARGUMENT where the optimizer
 * does not have it. */
typedef enum trama_step_part {
    TRAMA_STEP_NUMBER, /* i64, from 1; if the rule or the schedule uses it */
    TRAMA_STEP_LR,     /* f64; with a schedule */
    TRAMA_STEP_NORM,   /* f64, of all gradients before clip_norm; with clip_norm */
    TRAMA_STEP_TAKEN,  /* u8, 1 if the step is taken; with a loss scale */
    TRAMA_STEP_SCALE,  /* f64, for the next step; with a loss scale */
    TRAMA_N_STEP_PARTS /* number of parts */
} trama_step_part;
#define trama_step_value(minimized, part) trama_step_value_at(TRAMA_HERE, minimized, part)
trama_value *trama_step_value_at(trama_where where, trama_value *minimized, trama_step_part part);

/* ---- Gradient merge ---- */

/* Gradient accumulation: every run of the target becomes a micro-step. It adds gradients to buffers in the layouts in
 * which they arise, terms included. Only each k-th run sums them over the mesh, clips, checks and updates; until then
 * the updates do not run, and schedules and counters of steps stand still. k = 1 is plain training, to the bit;
 * trama_merge_set changes k between runs. how: trama_merge_kind. E_ARGUMENT for k < 1, for another how, for a target
 * that merges already, that has no trama_minimize, or that shares one with another target; E_UNSUPPORTED in eager mode.
 * Returns the target. */
#define trama_gradient_merge(target, k, how) trama_gradient_merge_at(TRAMA_HERE, target, k, how)
trama_target *trama_gradient_merge_at(trama_where where, trama_target *target, int64_t k, unsigned how);

/* The gradient of the parameter that the updates of `minimized` get, before clipping and unscaling; accumulated if a
 * target merges. A read gives that of the last applied step. E_ARGUMENT for a parameter that `minimized` does not
 * train. */
#define trama_merged_gradient(minimized, parameter) trama_merged_gradient_at(TRAMA_HERE, minimized, parameter)
trama_value *trama_merged_gradient_at(trama_where where, trama_value *minimized, const trama_value *parameter);

/* ---- For rules ---- */

/* The update of one parameter in one trama_minimize. */
struct trama_update {
    trama_where where;                /* of trama_minimize, for builders that end in _at */
    const trama_optimizer *optimizer; /* its options */
    trama_value *parameter;           /* its content before the step */
    struct trama_updates *all; /* internal: shared by the updates of one trama_minimize */
};

/* The gradient, unscaled and clipped, in the parameter's shape and type. Call it after the other functions of the
 * update: the task of the update then begins with the gradient. */
trama_value *trama_update_gradient(const trama_update *update);
trama_value *trama_update_lr(const trama_update *update);    /* the learning rate: scalar, of the parameter's type */
trama_value *trama_update_step(const trama_update *update);  /* the number of the step, from 1: scalar, i64 */
trama_value *trama_update_taken(const trama_update *update); /* 0 where the step is not taken, else 1: scalar, u8 */
/* State of this parameter, in its shape, type and layout, or that of its parts (share_bytes), 0 at first. Its name is
 * "parameter.name". */
trama_value *trama_update_slot(const trama_update *update, const char *name);
/* Assigns value to the parameter or to a slot, if the step is taken. If an op has written value over that state
 * already, the call only registers the update. */
void trama_update_set(const trama_update *update, trama_value *state, trama_value *value);

TRAMA_API_END
#endif
