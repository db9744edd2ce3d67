// SPDX-License-Identifier: Apache-2.0

#include "predictor/search_space.h"
