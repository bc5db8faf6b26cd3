"""Results for people: `figures` turns arrays into pictures, `page` puts pictures and tables on one HTML page."""
