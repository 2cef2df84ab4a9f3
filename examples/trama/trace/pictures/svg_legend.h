/* SPDX-License-Identifier: Apache-2.0 */
/* The legend of a timeline: names by role, those that take longest first, with their share of the workers' time. */
#ifndef SVG_LEGEND_H
#define SVG_LEGEND_H

#include "svg_view.h"

typedef struct legend legend;

/* The view stays until it is destroyed. */
legend *legend_new(const view *v, int width);
int legend_height(const legend *l);
void legend_draw(const legend *l, FILE *out, int x, int y);
void legend_destroy(legend **l);

#endif
