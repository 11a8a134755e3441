# frozen_string_literal: true

# Only looked up, never loaded: see culet/require.
