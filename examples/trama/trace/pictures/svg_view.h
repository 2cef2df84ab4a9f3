/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline's part of a trace: which steps or times, how much of them each worker is busy and each name takes, and
 * the bars of messages. Knows how wide the plot is, and nothing else of the drawing. */
#ifndef SVG_VIEW_H
#define SVG_VIEW_H

#include "picture_parts.h"
#include "pictures.h"

enum { MOST_LANES = 8 }; /* of a rank's messages */

/* Messages to one rank: one or, where they could not be told apart, several. */
typedef struct message_bar {
    int message, n; /* the first, how many */
    int rank, lane;
    int64_t bytes;
    span span;
} message_bar;

typedef struct view {
    const trace *t;
    double last;  /* of all times */
    span shown;   /* not empty */
    bool whole;   /* the trace */
    bool unknown; /* the steps that were asked for are not there, so others are shown */
    trace_step *steps;
    int n_steps, first, n_chosen; /* steps[first], ... were chosen; 0: a time was */
    int n_began, n_unended;       /* tasks of the whole trace */
    int n_tasks, n_messages;      /* shown */
    double *busy;                 /* [n_workers] ms shown, of tasks that ended */
    double *time;                 /* [n_names] the same */
    int *count;                   /* [n_names] tasks shown */
    int n_bars, *bar_of;          /* [n_messages], -1 where it is not shown */
    message_bar *bars;
    int *n_lanes; /* [n_ranks] */
} view;

/* plot: pixels from the first time shown to the last. */
view *view_new(const trace *t, const trace_picture *options, double plot);
void view_destroy(view **v);

/* Whether any part of s is shown. */
bool view_has(const view *v, span s);

/* The part of s that is shown. */
span view_part(const view *v, span s);

#endif
