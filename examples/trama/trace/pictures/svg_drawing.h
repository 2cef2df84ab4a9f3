/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of a timeline: where rows and lanes lie, and the bars that are drawn into them. */
#ifndef SVG_DRAWING_H
#define SVG_DRAWING_H

#include "svg_view.h"

enum {
    WIDTH = 1400,
    RIGHT = 86, /* of the plot */
    BAR = 20,   /* high, of a task */
    LANE = 5    /* of messages */
};

/* How messages are drawn. */
#define MESSAGE_COLOR "#64748b"

typedef struct drawing {
    const view *v;
    const trace *t;
    FILE *out;
    bool places;           /* workers tell theirs */
    int left, top, bottom; /* of the plot */
    double scale;          /* pixels a ms */
    int *worker_y;         /* [n_workers] of its bars */
    int *rank_y, *lane_y;  /* [n_ranks] of its first worker, of its first lane */
} drawing;

static inline double x_of(const drawing *d, double ms)
{
    return d->left + (ms - d->v->shown.begin) * d->scale;
}

void draw_tasks(const drawing *d);

/* Bars of messages that are sent and not yet taken, at the receiver. */
void draw_message_bars(const drawing *d);

/* Arrows from sender to receiver, of messages that were sent and arrived in the time shown. */
void draw_arrows(const drawing *d);

#endif
