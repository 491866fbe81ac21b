"""Pages as HTML: templates, charts, the style sheet."""
