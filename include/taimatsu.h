/* Everything: tensors, operators, gradients, layers, optimisers, files. `#include <taimatsu.h>`, then link with -ltaimatsu. */
#ifndef TAIMATSU_H
#define TAIMATSU_H

#include "taimatsu/autograd.h"
#include "taimatsu/base.h"
#include "taimatsu/io.h"
#include "taimatsu/nn.h"
#include "taimatsu/ops.h"
#include "taimatsu/optim.h"
#include "taimatsu/tensor.h"

#endif
