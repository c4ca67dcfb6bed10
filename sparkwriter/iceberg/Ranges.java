package binlogd;

import java.io.IOException;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Reads a part of a file by one request. Iceberg's streams ask an object store for all that follows
 * a place, and break the connection off when a reader has enough.
 *
 * Compiled by Spark's own compiler (see ranges.py), which knows no generics and no lambdas.
 */
public class Ranges {
  public static byte[] read(InputFile file, long start, int length) throws IOException {
    byte[] found = new byte[length];
    SeekableInputStream stream = file.newStream();
    try {
      if (stream instanceof RangeReadable) {
        ((RangeReadable) stream).readFully(start, found, 0, length);
      } else {
        stream.seek(start);
        IOUtil.readFully(stream, found, 0, length);
      }
    } finally {
      stream.close();
    }
    return found;
  }
}
