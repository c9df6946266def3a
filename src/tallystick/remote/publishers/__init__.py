"""Ways on which directives go out, one small class each; none of them knows a store."""
