// SPDX-License-Identifier: Apache-2.0
//
// Nothing may be stored without this check; see base/utf8.h.

#ifndef CUBICML_STORAGE_UTF8_H_
#define CUBICML_STORAGE_UTF8_H_

#include "base/utf8.h"

#endif  // CUBICML_STORAGE_UTF8_H_
