/* SPDX-License-Identifier: Apache-2.0 */
/* How parameters follow their gradients. trama_minimize takes one step of an optimizer: gradients, and for each
 * parameter what the optimizer's rule makes of them. Rules of your own are made like those that are here:
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

typedef struct trama_update trama_update;       /* what a rule is given */
typedef struct trama_optimizer trama_optimizer; /* a rule and its options */

enum { TRAMA_SCHEDULE_NUMBERS = 8 /* of a schedule, at most */ };

/* The learning rate over the steps: that of the optimizer times factor(n, numbers), n from 0 and counting steps that
 * were taken. In the first `warmup` steps it rises to that of n = 0 in equal parts, and n stays 0. factor NULL: 1. A
 * callback of your own is called by every process alike, on any thread, and must depend on nothing but n, numbers. */
typedef struct trama_schedule {
    double (*factor)(int64_t n, const double *numbers); /* of the learning rate; NULL: 1 */
    double numbers[TRAMA_SCHEDULE_NUMBERS];             /* what factor is given */
    int64_t warmup;    /* >= 0 */
    const char *wrong; /* what trama_minimize says of numbers that make no schedule; NULL */
} trama_schedule;

trama_schedule trama_schedule_constant(int64_t warmup);            /* 1, after so many steps of rising */
trama_schedule trama_schedule_cosine(int64_t steps, double floor); /* from 1 down to floor, in [0, 1], where it stays */
trama_schedule trama_schedule_step(int64_t every, double factor);  /* factor^(n / every), rounded down; factor > 0 */
/* Smith & Topin 2018 as PyTorch's OneCycleLR: over 0.3 of the steps from 1/25 to 1, then down to 1/25e4; both as a
 * cosine. */
trama_schedule trama_schedule_one_cycle(int64_t steps);

/* For element types in which small gradients vanish: the loss is multiplied by a scale before it is differentiated, and
 * gradients are divided by it. A step whose gradients are not all finite is not taken: nothing changes, the number of
 * the step neither, but the scale, which is multiplied by backoff; after `interval` steps in a row that were taken, by
 * growth. Nothing waits for it. Finite is what has a finite sum of squares in f64: all of f32, f64 up to 1e154. The
 * scale is cast to the loss's type: a loss in f16 takes up to 32768, and steps of more are not taken, as above. */
typedef struct trama_loss_scale {
    double initial;         /* > 0; 0: there is no scale, and every step is taken */
    double growth, backoff; /* >= 1; in (0, 1]; both 1: the scale stays */
    int64_t interval;       /* >= 1 */
} trama_loss_scale;
trama_loss_scale trama_loss_scale_dynamic(void); /* 65536, 2, 0.5, 2000, as PyTorch's GradScaler */

/* Records the ops that update one parameter. In a recorded program they see all state as it was before the step. */
typedef void (*trama_update_rule)(const trama_update *update);

/* Parameters that another optimizer updates: names with commas between, where "b*" stands for all that begin with b. Of
 * that optimizer rule, lr, schedule and the rule's options count; clipping and loss scale are everybody's. NULL:
 * frozen, they stay as they are. */
typedef struct trama_parameter_group {
    const char *parameters;           /* "w1,b*" */
    const trama_optimizer *optimizer; /* borrowed; NULL: frozen */
} trama_parameter_group;

/* Filled in by the functions below, and changed as you like before trama_minimize, which copies what it needs and
 * checks the ranges. A rule uses the options that its formula has. State and lr have the parameter's type: of a parameter
 * in bf16, and of averages, an update of less than 2^-9 is lost; in f16 adam's squares of small gradients are 0. Keep
 * such parameters in f32, and cast them where they are used. */
struct trama_optimizer {
    const char *name; /* for messages, and of its state; borrowed */
    trama_update_rule rule;   /* what it does to one parameter */
    double lr;                /* >= 0 */
    trama_schedule schedule;  /* of lr; constant */
    double weight_decay;      /* >= 0 */
    double momentum;          /* sgd: in [0, 1) */
    bool nesterov;            /* sgd, with momentum */
    double beta1, beta2, eps; /* adam, adamw, lamb: in [0, 1); eps >= 0 */
    double clip_value; /* > 0: gradients are held to +- it; INFINITY, as it is filled in: not at all */
    /* Then all of them are multiplied by min(1, clip_norm / (norm + 1e-6)), with the norm of all of them together,
     * whatever meshes they are on. > 0; INFINITY, as it is filled in: not at all. */
    double clip_norm;
    trama_loss_scale loss_scale; /* none */
    int n_groups;                /* no parameter may be in two */
    const trama_parameter_group *groups; /* [n_groups]; borrowed */
};

/* g += weight_decay w; with momentum b = momentum b + g, and then g = b, or g += momentum b for nesterov; w -= lr g. */
trama_optimizer trama_sgd(double lr); /* no momentum, no decay */
/* Kingma & Ba 2015, algorithm 1, with g += weight_decay w before it: betas 0.9 0.999, eps 1e-8, no decay. */
trama_optimizer trama_adam(double lr);
/* Loshchilov & Hutter 2019, algorithm 2, whose decay is lr weight_decay w: as adam, weight_decay 0.01. */
trama_optimizer trama_adamw(double lr);
/* You et al. 2020, algorithm 2: as adamw, but each parameter moves by lr |w| / |update| times the update (weight_decay
 * w is part of it), by lr times it where a norm is 0. eps 1e-6. */
trama_optimizer trama_lamb(double lr);
/* One of your own. Its other options are 0 until you set them, and nothing is clipped. */
trama_optimizer trama_optimizer_define(const char *name, double lr, trama_update_rule rule);

/* One step of the optimizer on every parameter the loss depends on; the result only stands in trama_target_create. */
#define trama_minimize(loss, ...) trama_minimize_at(TRAMA_HERE, loss, __VA_ARGS__)
trama_value *trama_minimize_at(trama_where where, trama_value *loss, const trama_optimizer *optimizer);

/* What a step of `minimized` has beside the parameters, 0-d; in the list of a target it can be read. E_ARGUMENT where
 * the optimizer has no such thing. */
typedef enum trama_step_part {
    TRAMA_STEP_NUMBER, /* i64, from 1; of optimizers that count */
    TRAMA_STEP_LR,     /* f64; with a schedule */
    TRAMA_STEP_NORM,   /* f64, of all gradients before clip_norm; with clip_norm */
    TRAMA_STEP_TAKEN,  /* u8, whether it is; with a loss scale */
    TRAMA_STEP_SCALE,  /* f64, of the next step; with a loss scale */
    TRAMA_N_STEP_PARTS /* how many there are */
} trama_step_part;
#define trama_step_value(minimized, part) trama_step_value_at(TRAMA_HERE, minimized, part)
trama_value *trama_step_value_at(trama_where where, trama_value *minimized, trama_step_part part);

/* ---- Gradient merge ---- */

/* Every run of the target becomes a micro-step: gradients are added up where and as they are, terms included, and only
 * each k-th run goes on: sums them over the mesh, clips, checks and updates. Until then nothing of that moves or runs,
 * and schedules and counters of steps stand still. k = 1 is plain training, to the bit; k may be changed while it runs
 * (trama_merge_set). how: trama_merge_kind. E_ARGUMENT for k < 1, a target without trama_minimize, or with one that
 * another target has; E_UNSUPPORTED in eager mode. Returns the target. */
#define trama_gradient_merge(target, k, how) trama_gradient_merge_at(TRAMA_HERE, target, k, how)
trama_target *trama_gradient_merge_at(trama_where where, trama_target *target, int64_t k, unsigned how);

/* The gradient that the updates of `minimized` see before they clip and unscale it: merged, where a target merges. It
 * reads as of the last step that was applied. */
#define trama_merged_gradient(minimized, parameter) trama_merged_gradient_at(TRAMA_HERE, minimized, parameter)
trama_value *trama_merged_gradient_at(trama_where where, trama_value *minimized, const trama_value *parameter);

/* ---- What a rule has ---- */

/* One parameter in one trama_minimize. */
struct trama_update {
    trama_where where;                /* of trama_minimize, for builders that end in _at */
    const trama_optimizer *optimizer; /* its options */
    trama_value *parameter;           /* as it is before the step */
    struct trama_updates *all; /* what the updates of one trama_minimize share; not for you */
};

/* The gradient, unscaled and clipped: shaped as the parameter, of its type. What else the update needs is best asked
 * for before it, since a task begins with it. */
trama_value *trama_update_gradient(const trama_update *update);
trama_value *trama_update_lr(const trama_update *update);    /* the learning rate: 0-d, of the parameter's type */
trama_value *trama_update_step(const trama_update *update);  /* the number of the step, from 1: 0-d, i64 */
trama_value *trama_update_taken(const trama_update *update); /* 0 where the step is not taken, else 1: 0-d, u8 */
/* State of this parameter: its shape, type and layout, 0 at first. The name makes it "parameter.name". */
trama_value *trama_update_slot(const trama_update *update, const char *name);
/* The parameter, or a slot, becomes value, if the step is taken. Where value is the result of an op that wrote it
 * already, this only says so. */
void trama_update_set(const trama_update *update, trama_value *state, trama_value *value);

TRAMA_API_END
#endif
